// SPDX-License-Identifier: Apache-2.0
/* Reads any bytes as a file of another profiler, up to the tables of the recording that it becomes. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct rec_reader *r = NULL;
	struct mdl *m = mdl_new();
	struct err e = {0};

	if (fd < 0 || !m || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	if (import_format(fd) && !import_open(fd, "trace", NULL, &r, &e)) {
		if (rec_reader_model(r, m, &e) || rec_reader_verify(r)) /* what mxbpf writes itself is whole */
			__builtin_trap();
		rec_reader_close(r);
	}
	mdl_free(m);
	close(fd);
	return 0;
}
