// SPDX-License-Identifier: Apache-2.0
/* The text of arguments, from the words that BPF interned: three lines of JSON. */
#include "cmd/live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct args {
	const struct live *l;
	uint64_t words[MXBPF_ARG_WORDS_MAX];
	size_t n;
	bool no_lists; /* their elements would be too much text */
	struct mxbpf_tensor tensor;
	struct buf out;
};

enum line { SIZES, TYPES, STRIDES, LINES };

static int put_type(struct args *a, uint16_t dtype)
{
	const struct adp_args *known = &a->l->plan.adp->args;

	if (dtype < known->ndtypes)
		return buf_printf(&a->out, "\"%s\"", known->dtypes[dtype]);
	return buf_printf(&a->out, "\"dtype %u\"", dtype);
}

static int put_dims(struct args *a, const __s64 *dims, unsigned n)
{
	int err = buf_printf(&a->out, "[");
	unsigned i;

	for (i = 0; !err && i < n; i++)
		err = buf_printf(&a->out, "%s%lld", i ? "," : "", dims[i]);
	return err ? err : buf_printf(&a->out, "]");
}

/* One that is none, or that nothing is known of, has the same form as torch.profiler writes it. */
static int put_tensor(struct args *a, uint64_t word, enum line line)
{
	const struct mxbpf_tensor *t = &a->tensor;

	if (word < MXBPF_WORD_LIST || ring_read_tensor(att_tensors_fd(a->l->att), word, &a->tensor))
		return buf_printf(&a->out, line == TYPES ? "\"\"" : "[]");
	if (line == TYPES)
		return put_type(a, t->dtype);
	return line == SIZES ? put_dims(a, t->dims, t->ndim) : put_dims(a, t->dims + t->ndim, t->strided ? t->ndim : 0);
}

static int put_list(struct args *a, size_t first, size_t n, enum line line)
{
	int err = buf_printf(&a->out, line == TYPES ? "\"TensorList\"" : "[");
	size_t i;

	if (line == TYPES)
		return err;
	for (i = first; !err && i < first + n && !a->no_lists; i++) {
		err = buf_printf(&a->out, i > first ? "," : "");
		err = err ? err : put_tensor(a, a->words[i], line);
	}
	return err ? err : buf_printf(&a->out, "]");
}

static int put_line(struct args *a, enum line line)
{
	static const char *const types[] = {[MXBPF_WORD_SCALAR] = "Scalar", [MXBPF_WORD_SCALARS] = "ScalarList"};
	int err = buf_printf(&a->out, "%s[", line ? "\n" : "");
	size_t i, n;

	for (i = 0; !err && i < a->n; i += n) {
		uint64_t word = a->words[i];

		err = buf_printf(&a->out, i ? "," : "");
		n = 1;
		if (err)
			break;
		if (word == MXBPF_WORD_LONG_LIST) {
			err = put_list(a, i, 0, line);
		} else if (word >= MXBPF_WORD_LIST && word <= MXBPF_WORD_LIST + MXBPF_ARG_LIST_MAX) {
			n += word - MXBPF_WORD_LIST;
			err = i + n <= a->n ? put_list(a, i + 1, n - 1, line) : -EBADMSG;
		} else if (line == TYPES && (word == MXBPF_WORD_SCALAR || word == MXBPF_WORD_SCALARS)) {
			err = buf_printf(&a->out, "\"%s\"", types[word]);
		} else {
			err = put_tensor(a, word, line);
		}
	}
	return err ? err : buf_printf(&a->out, "]");
}

int live_args_text(const struct live *l, uint64_t id, struct buf *out)
{
	struct args a = {.l = l};
	int n = ring_read_args(att_args_fd(l->att), id, a.words), err = n < 0 ? n : 0;
	enum line line;

	a.n = n < 0 ? 0 : (size_t)n;
	for (; !err; a.no_lists = true) {
		a.out.len = 0;
		for (line = SIZES; !err && line < LINES; line++)
			err = put_line(&a, line);
		if (a.out.len <= MXBPF_TEXT_BYTES_MAX || a.no_lists)
			break;
	}
	if (!err && a.out.len > MXBPF_TEXT_BYTES_MAX)
		err = -E2BIG;
	if (err)
		buf_fini(&a.out);
	*out = a.out;
	return err;
}
