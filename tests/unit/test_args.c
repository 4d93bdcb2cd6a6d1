/* SPDX-License-Identifier: Apache-2.0 */
/* Tests where plan_args() expects the arguments of a schema in the C++ function of an operator, by the x86-64 ABI. */
#include "unit.h"

#include "adapter/adapter.h"
#include "plan/priv.h"

#define STACK MXBPF_ARG_REGS

static struct mxbpf_func_args args;

static unsigned count(const char *schema, const char *symbol)
{
	const struct plan_func f = {.schema = schema, .symbol = symbol};

	args = plan_args(&adapter_pytorch, &f);
	return args.n;
}

static bool is(unsigned i, enum mxbpf_arg_kind kind, unsigned slot)
{
	return args.args[i].kind == kind && args.args[i].slot == slot;
}

static bool is_optional(unsigned i, enum mxbpf_arg_kind kind, unsigned slot, enum mxbpf_arg_opt opt, unsigned off)
{
	return is(i, kind, slot) && args.args[i].opt == opt && args.args[i].opt_off == off;
}

int main(void)
{
	TEST("a returned object takes the first register, and a returned reference or number does not")
	{
		CHECK(count("mm(Tensor self, Tensor mat2) -> Tensor", "") == 2);
		CHECK(is(0, MXBPF_ARG_TENSOR, 1) && is(1, MXBPF_ARG_TENSOR, 2) && args.nslots == STACK);
		CHECK(count("f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "") == 2 &&
		      is(1, MXBPF_ARG_TENSOR, 1));
		CHECK(count("f(Tensor(a) self) -> Tensor(a)", "") == 1 && is(0, MXBPF_ARG_TENSOR, 1));
		CHECK(count("f(Tensor(a -> *) self, int n) -> Tensor(a)[]", "") == 2 && is(0, MXBPF_ARG_TENSOR, 1));
		CHECK(count("f(Tensor self) -> (Tensor(a!) x, Tensor(b!) y)", "") == 1 && is(0, MXBPF_ARG_TENSOR, 1));
		CHECK(count("f(Tensor self) -> bool", "") == 1 && is(0, MXBPF_ARG_TENSOR, 0));
		CHECK(count("f(Tensor(a!)[] self) -> ()", "") == 1 && is(0, MXBPF_ARG_TENSORS, 0));
	}
	TEST("an argument of several words lies on the stack as a whole, and later arguments still take registers")
	{
		CHECK(count("f(Tensor[] a, Tensor[] b, bool c, Tensor[] d, Tensor? e) -> ()", "") == 5);
		CHECK(is(2, MXBPF_ARG_SCALAR, 4) && is(3, MXBPF_ARG_TENSORS, STACK) && is(4, MXBPF_ARG_TENSOR_OPT, 5));
		CHECK(args.nslots == STACK + 2);
	}
	TEST("a floating-point argument takes no slot until the floating-point registers are used up")
	{
		CHECK(count("f(float a, float? b, Tensor c) -> ()", "") == 3);
		CHECK(is_optional(1, MXBPF_ARG_SCALAR, 0, MXBPF_ARG_IF_HERE, 0) && is(2, MXBPF_ARG_TENSOR, 1));
		CHECK(count("f(float a, float b, float c, float d, float e, float f, float g, float h, float? i) -> ()",
			    "") == 9);
		CHECK(is_optional(8, MXBPF_ARG_SCALAR, STACK, MXBPF_ARG_IF_HERE, 8));
	}
	TEST("each type of optional argument has its own flag for being present")
	{
		CHECK(count("f(int? a, SymInt? b, int[2]? c, str? d, Device? e, Tensor f) -> ()", "") == 6);
		CHECK(is_optional(0, MXBPF_ARG_SCALAR, 0, MXBPF_ARG_IF_HERE, 8));
		CHECK(is_optional(1, MXBPF_ARG_SCALAR, 2, MXBPF_ARG_IF_THERE, 8));
		CHECK(is_optional(2, MXBPF_ARG_SCALARS, STACK, MXBPF_ARG_IF_HERE, 16));
		CHECK(is(3, MXBPF_ARG_OTHER, STACK + 3) && is(4, MXBPF_ARG_OTHER, 3) && is(5, MXBPF_ARG_TENSOR, 4));
	}
	TEST("defaults with commas and brackets do not end an argument, and a list may be passed as c10::IListRef")
	{
		CHECK(count("f(int[2] a=[1, 2], str b=\"x, (y\", bool[3] c, Tensor d) -> ()", "") == 4);
		CHECK(is(0, MXBPF_ARG_SCALARS, 0) && is(2, MXBPF_ARG_SCALARS, 4) && is(3, MXBPF_ARG_TENSOR, 5));
		CHECK(count("cat(Tensor[] tensors, int dim=0) -> Tensor", "ERKN3c108IListRefINS_6TensorEEEl") == 2);
		CHECK(is(0, MXBPF_ARG_TENSORS_REF, 1) && is(1, MXBPF_ARG_SCALAR, 2));
	}
	TEST("an unknown type or a truncated schema leaves the function without arguments")
	{
		CHECK(!count("f(Tensor self, __torch__.torch.classes.c10d.Work w) -> Tensor", ""));
		CHECK(!count("f(Tensor self", "") && !count("", "") && !count(NULL, ""));
		CHECK(!count("f(Any x) -> ()", "") && !count("f(Tensor[][] x) -> ()", ""));
	}
	UNIT_MAIN_END;
}
