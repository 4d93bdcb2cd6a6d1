// SPDX-License-Identifier: Apache-2.0
/* Why there are no records of the GPU: each state and each error has a sentence with its remedy. */

#include "feature/activity/activity.h"
#include "mxbpf_gpu.h"
#include "unit.h"

static struct mxbpf_gpu_shared gpu;

static const char *why(uint32_t state, uint32_t failed, uint32_t result)
{
	static char text[512];

	gpu.state = state;
	gpu.failed = failed;
	gpu.result = result;
	return ses_gpu_why(&gpu, text);
}

static bool is_whole(const char *text)
{
	return strlen(text) > 40 && strlen(text) < 500 && strstr(text, ": ") && !strstr(text, "%");
}

/* Errors that CUPTI returns to a client of its activities, but for 39, which means that it is busy. */
static const uint32_t codes[] = {1,  2,	 3,  7,	 8,  9,	 14, 15, 21, 23, 26, 27, 31,
				 33, 34, 35, 36, 38, 40, 41, 42, 43, 44, 45, 999};

int main(void)
{
	const char *text;
	unsigned i, k;

	TEST("every error of CUPTI has a sentence of its own")
	{
		for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
			text = why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_ENABLE, codes[i]);
			CHECK(is_whole(text) && !strstr(text, "mxbpf does not know") && strchr(text, ';'));
			for (k = 0; k < i; k++) {
				char copy[512];

				snprintf(copy, sizeof(copy), "%s", strstr(text, "): "));
				CHECK(!strstr(why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_ENABLE, codes[k]), copy));
				text = why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_ENABLE, codes[i]);
			}
		}
	}
	TEST("an error that mxbpf does not know says its number and what to try")
	{
		text = why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_SUBSCRIBE, 777);
		CHECK(strstr(text, "777") && strstr(text, "--cupti PATH"));
	}
	TEST("a busy CUPTI is told with the name of its holder, if that is known")
	{
		CHECK(strstr(why(MXBPF_GPU_BUSY, MXBPF_GPU_AT_SUBSCRIBE, 39), "another client holds CUPTI"));
		memcpy(gpu.holder, "nsys", 5);
		CHECK(strstr(why(MXBPF_GPU_BUSY, MXBPF_GPU_AT_SUBSCRIBE, 39), "another client (nsys) holds CUPTI"));
		text = why(MXBPF_GPU_BUSY, MXBPF_GPU_AT_REGISTER, 39);
		CHECK(strstr(text, "another client (nsys) holds CUPTI: its buffers are registered") && is_whole(text));
	}
	TEST("where a libcupti was looked for is told, with the driver's version")
	{
		gpu.driver = 12040;
		text = why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_LIBRARY, 0);
		CHECK(is_whole(text) && strstr(text, "(CUDA 12.4)") &&
		      strstr(text, "a libcudart, which is not mapped"));
		memset(gpu.path, 'x', sizeof(gpu.path) - 1);
		memcpy(gpu.path, "/opt/libcudart.so.12 ", 21);
		text = why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_LIBRARY, 0);
		CHECK(is_whole(text) && strstr(text, "/opt/libcudart.so.12") && strstr(text, "--cupti PATH"));
	}
	TEST("a missing library is named, with the option that names another")
	{
		memcpy(gpu.library, "/opt/libcupti.so.12", 20);
		text = why(MXBPF_GPU_FAILED, MXBPF_GPU_AT_LIBRARY, 0);
		CHECK(strstr(text, "/opt/libcupti.so.12") && strstr(text, "--cupti PATH"));
	}
	TEST("waiting for CUDA, for CUPTI and for the program's own profiler is told")
	{
		CHECK(is_whole(why(MXBPF_GPU_NO_CUDA, 0, 0)) && strstr(why(MXBPF_GPU_NO_CUDA, 0, 0), "CUDA"));
		CHECK(is_whole(why(MXBPF_GPU_SUBSCRIBING, 0, 0)));
		CHECK(strstr(why(MXBPF_GPU_YIELDED, 0, 0), "own profiler"));
	}
	return unit_end();
}
