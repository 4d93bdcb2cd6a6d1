// SPDX-License-Identifier: Apache-2.0
/*
 * Reads an interpreter that runs: PYTHON_LIVE, or python3 of the system. It tests what has been set with sys.settrace()
 * and sys.setprofile(), and local variables of the functions on a stack.
 */
#include "unit.h"

#include "python/python.h"

struct live {
	pid_t pid;
	int in;
	struct tgt *t;
	struct py *py;
};

/* Starts a program that prints a line and waits for one. */
static bool start(struct live *l, const char *program)
{
	const char *python = getenv("PYTHON_LIVE");
	int in[2], out[2];
	char byte;
	bool ready;

	if (pipe(in) || pipe(out))
		return false;
	l->pid = fork();
	if (!l->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execlp(python ? python : "python3", "python3", "-c", program, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	l->in = in[1];
	ready = read(out[0], &byte, 1) == 1;
	close(out[0]);
	return ready && !tgt_open(l->pid, &l->t, NULL) && !py_open(l->t, &l->py, NULL);
}

static void end(struct live *l)
{
	py_close(l->py);
	tgt_close(l->t);
	close(l->in);
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	*l = (struct live){.py = NULL};
}

#define WAIT "import sys\nprint('r', flush=True)\nsys.stdin.readline()\n"

static void keep(void *ctx, const struct py_thread *t)
{
	*(struct py_thread *)ctx = *t;
}

/* Returns how many objects are looked at for the locks of a program's only thread. -ENOENT: its version has none. */
static int look_for_locks(const char *program, unsigned max, struct py_locks *locks)
{
	struct py_thread t = {.fs_base = 0};
	struct live l = {.py = NULL};
	unsigned left = max;
	int err = -EIO;

	if (start(&l, program))
		py_each_thread(l.py, keep, &t);
	if (t.fs_base)
		err = py_thread_locks(l.py, t.fs_base, &left, locks);
	end(&l);
	return err ? err : (int)(max - left);
}

static void test_locks(void)
{
	static const char one[] = "import sys, threading\ndef f(guard):\n with guard:\n  print('r', flush=True)\n"
				  "  sys.stdin.readline()\nf(threading.Lock())\n";
	static const char many[] = "import sys\nclass A: pass\na = A()\nfor i in range(4000): setattr(a, f'a{i}', a)\n"
				   "def f(self, n):\n if n: f(self, n - 1)\n print('r', flush=True)\n"
				   " sys.stdin.readline()\nf(a, 50)\n";
	struct py_locks locks;
	int n = look_for_locks(one, 1000000, &locks);

	TEST_IF(n != -ENOENT,
		"the lock of a `with` statement is found, by a limited number of objects that are looked at",
		"its locks are not known")
	{
		CHECK(n > 0 && n < 1000 && locks.n > 1 && !strcmp(locks.list[0].name, "guard") && locks.list[1].with);
		CHECK(look_for_locks(one, 1, &locks) == 1 && !locks.n);
		CHECK(look_for_locks(many, 1000000, &locks) == 100000);
	}
}

int main(void)
{
	struct live l = {.py = NULL};
	struct py_tracing tracing;
	struct py_thread t;
	char text[100];

	TEST("an interpreter in which nothing is set has no tracing function")
	{
		CHECK(start(&l, WAIT));
		if (l.py)
			py_tracing(l.py, &tracing);
		CHECK(l.py && !tracing.traces && !tracing.profiles);
		end(&l);
	}
	TEST("what sys.settrace() has set is known")
	{
		CHECK(start(&l, "import sys\ndef f(*a): return f\nsys.settrace(f)\n" WAIT));
		if (l.py)
			py_tracing(l.py, &tracing);
		CHECK(l.py && tracing.traces && !tracing.profiles && !strcmp(tracing.tracer, "function"));
		end(&l);
	}
	TEST("what sys.setprofile() has set is known")
	{
		CHECK(start(&l, "import sys\nclass Tool:\n def __call__(*a): pass\nsys.setprofile(Tool())\n" WAIT));
		if (l.py)
			py_tracing(l.py, &tracing);
		CHECK(l.py && !tracing.traces && tracing.profiles && !strcmp(tracing.profiler, "Tool"));
		end(&l);
	}
	TEST("a string in a local variable is read, also one that an inner function uses, and a function's code")
	{
		CHECK(start(&l, "import sys\ndef g():\n print('r', flush=True)\n sys.stdin.readline()\n"
				"def f(code, why):\n cell = why + '!'\n inner = lambda: cell\n g()\n return inner\n"
				"f(g.__code__, 'size differs')\n"));
		t = (struct py_thread){.fs_base = 0};
		if (l.py)
			py_each_thread(l.py, keep, &t);
		CHECK(t.fs_base &&
		      py_local(l.py, &t, (struct py_function){"<string>", "f"}, "why", text, sizeof(text)) &&
		      !strcmp(text, "size differs"));
		CHECK(t.fs_base &&
		      py_local(l.py, &t, (struct py_function){"<string>", "f"}, "code", text, sizeof(text)) &&
		      !strcmp(text, "g (<string>:2)"));
		CHECK(t.fs_base &&
		      py_local(l.py, &t, (struct py_function){"<string>", "f"}, "cell", text, sizeof(text)) &&
		      !strcmp(text, "size differs!"));
		CHECK(t.fs_base &&
		      !py_local(l.py, &t, (struct py_function){"<string>", "f"}, "no", text, sizeof(text)));
		end(&l);
	}
	test_locks();
	UNIT_MAIN_END;
}
