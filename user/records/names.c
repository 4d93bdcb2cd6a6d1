// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "mxbpf_name.h"
#include "records/kinds.h"

int kind_put_name(struct buf *out, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, size_t len)
{
	struct mxbpf_name *n;
	size_t size;

	len = len < MXBPF_TEXT_BYTES_MAX ? len : MXBPF_TEXT_BYTES_MAX;
	size = (sizeof(*n) + len + 7) / 8 * 8;
	n = buf_add(out, size);
	if (!n)
		return -ENOMEM;
	memset(n, 0, size);
	n->h = (struct mxbpf_rec){.kind = MXBPF_NAME, .size = (uint16_t)size, .tgid = tgid};
	n->id = id;
	n->len = (uint32_t)len;
	n->kind = kind;
	memcpy(n->text, text, len);
	return 0;
}
