// SPDX-License-Identifier: Apache-2.0
/* Writes arguments as lines of JSON, from the words that BPF stored. */
#include "symbols/priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter/adapter.h"
#include "ring/ring.h"

struct args {
	const struct sym *s;
	uint64_t words[MXBPF_ARG_WORDS_MAX];
	size_t n;
	bool no_lists; /* leave out the elements of lists, which would make too much text */
	struct mxbpf_tensor tensor;
	struct buf out;
};

enum what { SIZES, TYPES, STRIDES };

/* Inputs come first, then outputs if they are known. */
static const struct line {
	enum what what;
	bool outputs;
} lines[] = {{SIZES, false}, {TYPES, false}, {STRIDES, false}, {SIZES, true}, {TYPES, true}};
#define NLINES (sizeof(lines) / sizeof(lines[0]))

/* Suffix of an array's type: which part of the array is stored. */
static const char *const storages[] = {"", " row_sparse", " csr"};
#define NSTORAGES (sizeof(storages) / sizeof(storages[0]))

static int put_type(struct args *a)
{
	const struct adp_args *known = &a->s->o.plan->adp->args;
	const char *storage = a->tensor.storage < NSTORAGES ? storages[a->tensor.storage] : "";
	uint16_t dtype = a->tensor.dtype;

	if (dtype < known->ndtypes && known->dtypes[dtype])
		return buf_printf(&a->out, "\"%s%s\"", known->dtypes[dtype], storage);
	return buf_printf(&a->out, "\"dtype %u%s\"", dtype, storage);
}

static int put_dims(struct args *a, const __s64 *dims, unsigned n)
{
	int err = buf_printf(&a->out, "[");
	unsigned i;

	for (i = 0; !err && i < n; i++)
		err = buf_printf(&a->out, "%s%lld", i ? "," : "", dims[i]);
	return err ? err : buf_printf(&a->out, "]");
}

/* An array without dimensions has a word in their place, because an empty list stands for a number. */
static int put_word(struct args *a, uint64_t word, enum what what)
{
	static const char *const words[] = {[MXBPF_WORD_UNREADABLE] = "unreadable",
					    [MXBPF_WORD_LONG_LIST] = "too many",
					    [MXBPF_WORD_UNKNOWN] = "unknown",
					    [MXBPF_WORD_UNWANTED] = "unwanted"};
	const char *text = word < sizeof(words) / sizeof(words[0]) ? words[word] : NULL;

	return buf_printf(&a->out, "\"%s\"", what == TYPES || !text ? "" : text);
}

/* A missing or unknown tensor is written as the profiler of the runtime writes it. */
static int put_tensor(struct args *a, uint64_t word, enum what what)
{
	const struct mxbpf_tensor *t = &a->tensor;

	if (word < MXBPF_WORD_LIST || ring_read_tensor(att_tensors_fd(a->s->att), word, &a->tensor))
		return buf_printf(&a->out, what == TYPES ? "\"\"" : "[]");
	if (what == TYPES)
		return put_type(a);
	return what == SIZES ? put_dims(a, t->dims, t->ndim) : put_dims(a, t->dims + t->ndim, t->strided ? t->ndim : 0);
}

static int put_list(struct args *a, size_t first, size_t n, enum what what)
{
	int err = buf_printf(&a->out, what == TYPES ? "\"TensorList\"" : "[");
	size_t i;

	if (what == TYPES)
		return err;
	for (i = first; !err && i < first + n && !a->no_lists; i++) {
		err = buf_printf(&a->out, i > first ? "," : "");
		err = err ? err : put_tensor(a, a->words[i], what);
	}
	return err ? err : buf_printf(&a->out, "]");
}

/* Writes operands that are all arrays. */
static int put_arrays(struct args *a, const uint64_t *words, size_t n, enum what what)
{
	int err = 0;
	size_t i;

	for (i = 0; !err && i < n; i++) {
		err = buf_printf(&a->out, i ? "," : "");
		if (err)
			break;
		err = what == STRIDES		   ? buf_printf(&a->out, "[]")
		      : words[i] < MXBPF_WORD_LIST ? put_word(a, words[i], what)
						   : put_tensor(a, words[i], what);
	}
	return err;
}

/* Writes arguments of any kind, lists among them. */
static int put_arguments(struct args *a, enum what what)
{
	static const char *const types[] = {[MXBPF_WORD_SCALAR] = "Scalar", [MXBPF_WORD_SCALARS] = "ScalarList"};
	size_t i, n;
	int err = 0;

	for (i = 0; !err && i < a->n; i += n) {
		uint64_t word = a->words[i];

		err = buf_printf(&a->out, i ? "," : "");
		n = 1;
		if (err)
			break;
		if (word == MXBPF_WORD_LONG_LIST) {
			err = put_list(a, i, 0, what);
		} else if (word >= MXBPF_WORD_LIST && word <= MXBPF_WORD_LIST + MXBPF_ARG_LIST_MAX) {
			n += word - MXBPF_WORD_LIST;
			err = i + n <= a->n ? put_list(a, i + 1, n - 1, what) : -EBADMSG;
		} else if (what == TYPES && (word == MXBPF_WORD_SCALAR || word == MXBPF_WORD_SCALARS)) {
			err = buf_printf(&a->out, "\"%s\"", types[word]);
		} else {
			err = put_tensor(a, word, what);
		}
	}
	return err;
}

static int put_line(struct args *a, const struct line *line, size_t nfirst)
{
	int err = buf_printf(&a->out, "%s[", line > lines ? "\n" : "");

	if (!err && nfirst == a->n)
		err = put_arguments(a, line->what);
	else if (!err && !line->outputs)
		err = put_arrays(a, a->words, nfirst, line->what);
	else if (!err)
		err = put_arrays(a, a->words + nfirst + 1, a->n - nfirst - 1, line->what);
	return err ? err : buf_printf(&a->out, "]");
}

int sym_args_text(const struct sym *s, uint64_t id, struct buf *out)
{
	struct args a = {.s = s};
	int n = ring_read_args(att_args_fd(s->att), id, a.words), err = n < 0 ? n : 0;
	const struct line *line;
	size_t nfirst = 0;

	a.n = n < 0 ? 0 : (size_t)n;
	while (nfirst < a.n && a.words[nfirst] != MXBPF_WORD_OUTPUTS)
		nfirst++;
	for (; !err; a.no_lists = true) {
		a.out.len = 0;
		for (line = lines; !err && line < lines + NLINES && (!line->outputs || nfirst < a.n); line++)
			err = put_line(&a, line, nfirst);
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
