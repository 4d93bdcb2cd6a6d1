/* SPDX-License-Identifier: Apache-2.0 */
/* A toy libmxnet of C for a Python of musl without ctypes. It is a module of Python, too. */
#include <Python.h>

#define ENTER _ZN5mxnet12on_enter_apiEPKc
#define EXIT  _ZN5mxnet11on_exit_apiEv
#define TOY(f)                                                                                                         \
	__attribute__((noinline)) void f(const char *name)                                                             \
	{                                                                                                              \
		__asm__ volatile("" : : "r"(name) : "memory");                                                         \
	}
TOY(ENTER)
TOY(EXIT)
TOY(MXNDArrayWaitToRead)
TOY(MXImperativeInvoke)
TOY(_ZN5mxnet6engine14ThreadedEngine15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockE)
TOY(_ZN5mxnet6engine14ThreadedEngine16OnCompleteStaticEPNS_6EngineEPvPKN4dmlc5ErrorE)
TOY(_ZN5mxnet6engine14ThreadedEngine4PushEPNS0_3OprENS_7ContextEib)

__attribute__((noinline)) int MXNDArrayWaitAll(void)
{
	ENTER("MXNDArrayWaitAll");
	EXIT(NULL);
	__asm__ volatile("");
	return 0;
}

static PyObject *wait_all(PyObject *self, PyObject *args)
{
	(void)self;
	(void)args;
	Py_BEGIN_ALLOW_THREADS MXNDArrayWaitAll();
	Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"MXNDArrayWaitAll", wait_all, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "libmxnet", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_libmxnet(void)
{
	return PyModule_Create(&module);
}
