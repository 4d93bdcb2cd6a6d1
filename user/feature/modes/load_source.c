// SPDX-License-Identifier: Apache-2.0
/* Finds the line of the program that turns a mode on: in the files of the functions that its main thread is in. */
#include "feature/modes/load_source.h"
#include "feature/lines/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES	    8
#define FILES_MAX   8
#define FILE_BYTES  (1u << 20)
#define STACK_BYTES 8192
#define SHOWN_BYTES 80

/* What a line has that turns the mode on. */
static const char *const words[MODES][3] = {
	[MODE_ANOMALY] = {"set_detect_anomaly(", "detect_anomaly(", "set_anomaly_enabled("},
	[MODE_DETERMINISTIC] = {"use_deterministic_algorithms(", "set_deterministic_debug_mode("},
	[MODE_DETERMINISTIC_CUDNN] = {"cudnn.deterministic"},
	[MODE_SETTRACE] = {"settrace("},
	[MODE_SETPROFILE] = {"setprofile("},
	[MODE_COVERAGE] = {"Coverage("},
	[MODE_CPROFILE] = {"cProfile.", "Profile("},
	[MODE_TORCH_PROFILER] = {"profiler.profile(", "profile("},
	[MODE_TRACEMALLOC] = {"tracemalloc.start("},
	[MODE_LAUNCH_BLOCKING] = {"CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL"},
	[MODE_NAIVE_ENGINE] = {"MXNET_ENGINE_TYPE"},
	[MODE_NO_CACHING] = {"PYTORCH_NO_CUDA_MEMORY_CACHING"},
	[MODE_MXNET_PROFILER] = {"MXNET_PROFILER_AUTOSTART"},
	[MODE_NCCL_WAIT] = {"NCCL_BLOCKING_WAIT"},
	[MODE_DISTRIBUTED_DEBUG] = {"TORCH_DISTRIBUTED_DEBUG"},
};

static bool turns_on(const char *line, size_t len, enum mode mode)
{
	unsigned i;

	for (i = 0; i < 3 && words[mode][i]; i++)
		if (memmem(line, len, words[mode][i], strlen(words[mode][i])))
			return *line != '#' && !memmem(line, len, "(False", 6);
	return false;
}

/* Writes "FILE(12): SOURCE" of the first such line. Returns its length, or 0 if there is none. */
static size_t search(const char *file, size_t file_len, const char *text, size_t left, enum mode mode, char *to,
		     size_t max)
{
	unsigned number = 1;
	const char *end;
	size_t n, i, used;
	int len;

	for (; left; number++, text += n, left -= n) {
		end = memchr(text, '\n', left);
		n = end ? (size_t)(end - text) + 1 : left;
		i = strspn(text, " \t");
		if (i >= n || !turns_on(text + i, n - i, mode))
			continue;
		n -= i + !!end;
		len = snprintf(to, max, "%.*s(%u): %.*s", (int)file_len, file, number,
			       (int)(n < SHOWN_BYTES ? n : SHOWN_BYTES), text + i);
		used = len < 0 ? 0 : (size_t)len < max ? (size_t)len : max - 1;
		for (i = 0; i < used; i++)
			to[i] = (char)(to[i] < 0x20 || to[i] == 0x7f ? '?' : to[i]);
		return used;
	}
	return 0;
}

static ssize_t search_file(const struct tgt *t, const char *file, size_t file_len, enum mode mode, char *to, size_t max)
{
	char path[1024], *text = malloc(FILE_BYTES + 1);
	ssize_t n = -1, len = 0;

	if (text && (size_t)snprintf(path, sizeof(path), "%.*s", (int)file_len, file) < sizeof(path))
		n = tgt_read_file(t, path, text, FILE_BYTES);
	if (n > 0) {
		text[n] = '\0';
		len = (ssize_t)search(file, file_len, text, (size_t)n, mode, to, max);
	}
	free(text);
	return n == -ETIMEDOUT ? n : len;
}

static void keep_main(void *ctx, const struct py_thread *t)
{
	if (t->main)
		*(struct py_thread *)ctx = *t;
}

/* The thread goes on while its stack is read, and then it is read again. */
static bool read_main(struct py *py, struct mxbpf_stack *stack)
{
	struct py_thread main;
	unsigned i;

	for (i = 0; i < TRIES; i++) {
		main = (struct py_thread){.fs_base = 0};
		py_each_thread(py, keep_main, &main);
		if (main.fs_base && !py_stack_of(py, &main, stack))
			return true;
	}
	return false;
}

ssize_t source_line(const struct tgt *t, struct py *py, enum mode mode, char *to, size_t max)
{
	char text[STACK_BYTES];
	struct mxbpf_stack stack;
	unsigned lost, files = 0;
	size_t left, n;
	ssize_t len = 0;
	const char *line, *end, *open;

	if (!words[mode][0])
		return 0;
	left = read_main(py, &stack) ? py_stack_text(py, &stack, text, sizeof(text), &lost) : 0;
	for (line = text; left && !len && files < FILES_MAX; line += n, left -= n) {
		end = memchr(line, '\n', left);
		n = end ? (size_t)(end - line) + 1 : left;
		if (!lines_is_program(line, n - !!end) || !(open = memmem(line, n, ".py(", 4)))
			continue;
		files++;
		len = search_file(t, line, (size_t)(open + 3 - line), mode, to, max);
	}
	return files ? len : -EAGAIN;
}
