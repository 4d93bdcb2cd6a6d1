// SPDX-License-Identifier: Apache-2.0
/* Tests tables for people, fitted to the width of the terminal. */
#include <locale.h>

#include "base/fmt.h"
#include "read_file.h"
#include "view/text/grid.h"

#define WIDTH 40

static bool begins; /* names keep their beginning */

/* Returns a table with a column of names and one of numbers, and a note below the last row. The caller frees it. */
static char *shown(const char *const *names, const char *note)
{
	struct view_grid g = {.cols = {{"name", .left = true}, {"calls"}}, .ncols = 2, .begins = begins};
	char path[] = "/tmp/mxbpf-grid-XXXXXX", *text;
	struct err e = {0};
	struct out *o;
	size_t i;

	CHECK(!close(mkstemp(path)) && !out_open(path, false, &o, &e));
	for (i = 0; names[i]; i++)
		CHECK(!view_grid_add(&g, names[i], strlen(names[i])) && !view_grid_add(&g, "12345", 5));
	if (note)
		CHECK(!view_grid_note(&g, note, strlen(note)));
	view_grid_print(&g, WIDTH, o);
	view_grid_fini(&g);
	CHECK(!out_commit(o, &e));
	text = read_file(path);
	unlink(path);
	return text;
}

static bool aligned(char *text)
{
	const char *line;
	bool all = true;

	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		all &= fmt_columns(line) == WIDTH;
	return all;
}

int main(void)
{
	char *t;

	setlocale(LC_CTYPE, "C.UTF-8");

	TEST("names that share a long beginning lose it and keep the ends that differ")
	{
		const char *const names[] = {"autograd::engine::evaluate_function: AddmmBackward0",
					     "autograd::engine::evaluate_function: MulBackward0",
					     "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
					     "autograd::engine::evaluate_function: ANodeOfAnExtensionWithAVeryLongName",
					     "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
					     "aten::mm",
					     "aten::convolution_backward_overrideable",
					     "aten::convolution_backward_symint_xxxxxxx",
					     NULL};

		t = shown(names, NULL);
		CHECK(strstr(t, "\n…AddmmBackward0 ") && strstr(t, "\n…MulBackward0 "));
		CHECK(strstr(t, "\n…torch::autograd::AccumulateGrad ") && strstr(t, "\naten::mm "));
		CHECK(strstr(t, "\n…odeOfAnExtensionWithAVeryLongName "));
		CHECK(strstr(t, "\nenumerate(DataLoa…derIter.__next__ "));
		CHECK(strstr(t, "\naten::convolution…ard_overrideable "));
		CHECK(aligned(t));
		free(t);
	}

	TEST("names of kernels keep their functions, and what tells apart those of one function")
	{
		const char *const names[] = {
			"vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, std::array<char*, 3ul> >",
			"vectorized_elementwise_kernel<4, MulFunctor<float>, std::array<char*, 3ul> >",
			"cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_tn_align4>",
			"cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>",
			"reduce_kernel<512, 1, ReduceOp<float, func_wrapper_t<float> > >",
			"gemm<128, 64>",
			"卷积kernel<512, 1, 前向传播第一层卷积神经网络的训练步骤再加一些字>",
			NULL};

		begins = true;
		t = shown(names, NULL);
		begins = false;
		CHECK(strstr(t, "\nvectorized_eleme…CUDAFunctor_add<… ") &&
		      strstr(t, "\nvectorized_eleme…MulFunctor<float… "));
		CHECK(strstr(t, "\ncutlass::Kernel2…128x64_16x6_tn_a… ") &&
		      strstr(t, "\ncutlass::Kernel2…128x128_16x5_nn_… "));
		CHECK(strstr(t, "\nreduce_kernel<512, 1, ReduceOp<fl… ") && strstr(t, "\ngemm<128, 64>    "));
		CHECK(strstr(t, "\n卷积kernel<512, 1, 前向传播第一层…"));
		CHECK(aligned(t));
		free(t);
	}

	TEST("wide characters and marks do not shift later columns, even in shortened names")
	{
		const char *const names[] = {"卷积",
					     "e\xcc\x81t\xcc\x81",
					     "前向传播第一层卷积神经网络的训练步骤再加一些字",
					     "x前向传播第一层卷积神经网络的训练步骤再加一些字",
					     "abc",
					     NULL};

		t = shown(names, NULL);
		CHECK(strstr(t, "\n前向传播第一层卷…"));
		CHECK(aligned(t));
		free(t);
	}

	TEST("a long note is continued on the next lines without losing a word")
	{
		const char *const names[] = {"locked", NULL};

		t = shown(names, "slept or waited for a lock 11 times: 4.12 ms, until python3 (1234) woke it");
		CHECK(strstr(t, "\n    slept or waited for a lock 11 times:\n        4.12 ms, until python3 (1234)\n"
				"        woke it\n"));
		free(t);
		t = shown(names, "[[8,3],[12,12,12,12],[13,13,13,13],[14,14,14,14]]");
		CHECK(strstr(t, "\n    [[8,3],[12,12,12,1…3],[14,14,14,14]]\n"));
		free(t);
	}
	UNIT_MAIN_END;
}
