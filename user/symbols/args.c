// SPDX-License-Identifier: Apache-2.0
/* Writes arguments as lines of JSON, from the words that BPF stored or the agent handed over. */
#include "symbols/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "mxbpf_agent.h"
#include "ring/ring.h"

struct args {
	const struct sym *s;
	uint64_t words[MXBPF_ARG_WORDS_MAX];
	size_t n;
	bool no_lists;			  /* leave out the elements of lists, which would make too much text */
	const struct mxbpf_tensor *given; /* of the agent: the tensor of each word; NULL: BPF has stored them */
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

static int read_tensor(struct args *a, uint64_t word)
{
	size_t i = 0;

	if (!a->given)
		return ring_read_tensor(att_tensors_fd(a->s->att), word, &a->tensor);
	while (i < a->n && a->words[i] != word)
		i++;
	if (i == a->n)
		return -ENOENT;
	a->tensor = a->given[i];
	return 0;
}

/* A missing or unknown tensor is written as the profiler of the runtime writes it. */
static int put_tensor(struct args *a, uint64_t word, enum what what)
{
	const struct mxbpf_tensor *t = &a->tensor;

	if (word < MXBPF_WORD_LIST || read_tensor(a, word))
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

static int args_put_line(struct args *a, const struct line *line, size_t nfirst)
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

static int put_lines(struct args *a, struct buf *out)
{
	const struct line *line;
	size_t nfirst = 0;
	int err = 0;

	while (nfirst < a->n && a->words[nfirst] != MXBPF_WORD_OUTPUTS)
		nfirst++;
	for (; !err; a->no_lists = true) {
		a->out.len = 0;
		for (line = lines; !err && line < lines + NLINES && (!line->outputs || nfirst < a->n); line++)
			err = args_put_line(a, line, nfirst);
		if (a->out.len <= MXBPF_TEXT_BYTES_MAX || a->no_lists)
			break;
	}
	if (!err && a->out.len > MXBPF_TEXT_BYTES_MAX)
		err = -E2BIG;
	if (err)
		buf_fini(&a->out);
	*out = a->out;
	return err;
}

int sym_args_text(const struct sym *s, uint64_t id, struct buf *out)
{
	struct args a = {.s = s};
	int n = ring_read_args(att_args_fd(s->att), id, a.words);

	if (n < 0)
		return n;
	a.n = (size_t)n;
	return put_lines(&a, out);
}

/* ---- lists of the agent */

/* Reads a tensor at the start of a list. Returns the number of its words, or 0 if the list is damaged. */
static uint32_t take_tensor(const uint64_t *list, uint32_t n, struct mxbpf_tensor *t, uint64_t *id)
{
	const uint32_t ndim = MXBPF_AGENT_TENSOR_NDIM(list[0]), strided = MXBPF_AGENT_TENSOR_STRIDED(list[0]);
	const uint32_t words = ndim * (1 + !!strided);

	if (ndim > MXBPF_TENSOR_DIMS || strided > 1 || words > n - 1)
		return 0;
	*t = (struct mxbpf_tensor){.dtype = (uint16_t)MXBPF_AGENT_TENSOR_DTYPE(list[0]),
				   .ndim = (uint8_t)ndim,
				   .strided = (uint8_t)strided};
	memcpy(t->dims, list + 1, words * sizeof(*list));
	*id = mxbpf_name_id(mxbpf_name_fold(MXBPF_NAME_SEED, (const __u64 *)t, 8 + ndim * 16));
	return 1 + words;
}

/* Replaces the tensors in a list by their ids. */
static int take_words(struct args *a, struct mxbpf_tensor *tensors, const uint64_t *list, uint32_t n)
{
	uint32_t i = 0, words;

	while (i < n && a->n < MXBPF_ARG_WORDS_MAX) {
		a->words[a->n] = list[i];
		words = list[i] & MXBPF_AGENT_TENSOR ? take_tensor(list + i, n - i, &tensors[a->n], &a->words[a->n])
						     : 1;
		if (!words)
			return -EBADMSG;
		a->n++;
		i += words;
	}
	return i < n ? -EBADMSG : 0;
}

/* As words_intern() in bpf/read/args.bpf.h does it. */
static uint64_t words_id(const struct args *a)
{
	uint64_t h = MXBPF_NAME_SEED;
	size_t from, n;

	for (from = 0; from < a->n; from += MXBPF_ARG_WORDS_PART) {
		n = a->n - from < MXBPF_ARG_WORDS_PART ? a->n - from : MXBPF_ARG_WORDS_PART;
		h = mxbpf_name_fold(h, (const __u64 *)&a->words[from], (uint32_t)(n * sizeof(a->words[0])));
	}
	return mxbpf_name_id(h);
}

int sym_list_text(const struct sym *s, const uint64_t *list, uint32_t n, uint64_t *id, struct buf *out)
{
	struct mxbpf_tensor *tensors = calloc(MXBPF_ARG_WORDS_MAX, sizeof(*tensors));
	struct args a = {.s = s, .given = tensors};
	int err = tensors ? take_words(&a, tensors, list, n) : -ENOMEM;

	*id = words_id(&a);
	if (!err)
		err = put_lines(&a, out);
	free(tensors);
	return err;
}
