// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the inputs of an operator from the memory of its process, without stopping it. The operator may end meanwhile,
 * and its inputs be freed: then the objects that describe them have changed at a second reading, and nothing is kept.
 */
#include "feature/inputs/load.h"
#include "session/priv.h"
#include "table/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/regs.h"
#include "base/clock.h"
#include "base/hash.h"
#include "mxbpf_args.h"

#define TENSORS_MAX 4	/* of a call, that are read */
#define DIMS_MAX    5	/* more are not in the object itself */
#define SIZES_BYTES 160 /* of the text */
#define PLACES	    4	/* of an input, at which values are read */
#define PLACE_BYTES 128
#define DENORMAL_0  0x0040 /* MXCSR: inputs that are denormal count as 0 */
#define THREADS_MAX 1024
#define UNITS_NS    (5 * 1000000000ull) /* until they are read again: a program may change it */
#define TEXTS_MAX   1024

struct tensor {
	uint64_t at, words[MXBPF_IMPL_WORDS];
	uint64_t data;	  /* address of its first element; 0: not known, or not in memory of the CPU */
	unsigned element; /* bytes of a floating-point number; 0: it has none of these */
	bool dense;	  /* its elements are one piece of memory */
};

/* A thread. flushes: its processor takes denormal values as 0, so they cost nothing. */
struct unit {
	uint32_t tid;
	bool flushes;
};

struct inputs {
	struct session *ses;
	struct tbl found;
	struct unit units[THREADS_MAX]; /* of one process, and when they were read */
	unsigned nunits;
	uint32_t units_of; /* 0: none */
	uint64_t units_ns;
	struct hash texts; /* (hash of a text, process) -> its id */
	unsigned ntexts;
	int err;
};

struct inputs *inputs_new(struct session *ses)
{
	struct inputs *in = calloc(1, sizeof(*in));

	if (in)
		*in = (struct inputs){.ses = ses, .found = {.def = &inputs_table}};
	return in;
}

void inputs_free(struct inputs *in)
{
	if (in) {
		tbl_fini(&in->found);
		hash_fini(&in->texts);
	}
	free(in);
}

int inputs_take(struct inputs *in, struct buf *recs)
{
	int err = in->err ? in->err : tbl_emit(&in->found, recs);

	tbl_fini(&in->found);
	in->found = (struct tbl){.def = &inputs_table};
	in->err = 0;
	return err;
}

/* ---- a tensor */

static const char *type_of(const struct plan *plan, const struct tensor *t)
{
	const struct adp_args *a = &plan->adp->args;
	const uint16_t type = (uint16_t)t->words[MXBPF_IMPL_DTYPE];

	return type < a->ndtypes ? a->dtypes[type] : "";
}

static bool read_words(const struct tgt *t, const struct plan *plan, uint64_t at, uint64_t *words)
{
	const size_t bytes = MXBPF_IMPL_WORDS * sizeof(*words);

	return !tgt_read(t, at + plan->tensor_keys_off + sizeof(*words) - bytes, words, bytes);
}

/* The number of elements is stored beside the sizes, which tells an object that is a tensor. */
static bool is_tensor(const struct plan *plan, struct tensor *t)
{
	const uint64_t n = t->words[MXBPF_IMPL_NDIM];
	uint64_t i, product = 1, reach = 1;

	if (n > DIMS_MAX || !type_of(plan, t)[0])
		return false;
	for (i = 0; i < n; i++) {
		if (t->words[MXBPF_IMPL_SIZES + i] > UINT32_MAX || t->words[MXBPF_IMPL_STRIDES + i] > UINT32_MAX)
			return false;
		product *= t->words[MXBPF_IMPL_SIZES + i];
		reach += (t->words[MXBPF_IMPL_SIZES + i] - 1) * t->words[MXBPF_IMPL_STRIDES + i];
	}
	t->dense = product && reach == product;
	return product == t->words[MXBPF_IMPL_NUMEL];
}

/*
 * The type is followed by an optional device: its type, its index and whether it is there, or in c10's own optional
 * (until PyTorch 2.1) the last one first. The CPU has the type 0 and no index.
 */
static bool is_on_cpu(const struct tensor *x)
{
	const uint32_t device = x->words[MXBPF_IMPL_DTYPE] >> 16 & 0xffffff;

	return (device & 0xff00ff) == 0x010000 || device == 0xff0001;
}

/* The address of the data has the same place in a storage as the address of the storage has in a tensor. */
static void find_data(const struct tgt *t, const struct plan *plan, struct tensor *x)
{
	const char *type = type_of(plan, x);
	uint64_t storage, data;

	x->element = !strcmp(type, "float") ? 4 : !strcmp(type, "double") ? 8 : 0;
	if (!plan->tensor_storage_off || !is_on_cpu(x) || !x->element || !x->dense ||
	    tgt_read(t, x->at + plan->tensor_storage_off, &storage, sizeof(storage)) || !storage ||
	    tgt_read(t, storage + plan->tensor_storage_off, &data, sizeof(data)) || !data)
		return;
	x->data = data + x->words[MXBPF_IMPL_OFFSET] * x->element;
}

/* ref: address of the word that has the address of the object. */
static bool read_tensor(const struct tgt *t, const struct plan *plan, uint64_t ref, struct tensor *x)
{
	*x = (struct tensor){.at = 0};
	if (tgt_read(t, ref, &x->at, sizeof(x->at)) || !x->at || x->at == plan->target.undefined ||
	    !read_words(t, plan, x->at, x->words) || !is_tensor(plan, x))
		return false;
	find_data(t, plan, x);
	return true;
}

static bool is_same(const struct tgt *t, const struct plan *plan, uint64_t ref, const struct tensor *x)
{
	struct tensor now;

	return read_tensor(t, plan, ref, &now) && now.at == x->at && now.data == x->data &&
	       !memcmp(now.words, x->words, sizeof(now.words));
}

static bool is_denormal(const void *value, unsigned bytes)
{
	uint64_t w = 0;

	memcpy(&w, value, bytes);
	return bytes == 4 ? !(w & 0x7f800000) && w & 0x7fffff : !(w & 0x7ff0000000000000) && w & 0xfffffffffffff;
}

/* Returns the share of the values that are denormal, or -1 if none can be read. */
static double denormal_share(const struct tgt *t, const struct tensor *x)
{
	const uint64_t bytes = x->words[MXBPF_IMPL_NUMEL] * x->element;
	const size_t each = bytes < PLACE_BYTES ? bytes : PLACE_BYTES;
	unsigned n = 0, found = 0, i;
	char values[PLACE_BYTES];
	uint64_t at;
	size_t k;

	for (i = 0; x->data && each && i < PLACES; i++) {
		at = (bytes - each) / PLACES * i;
		if (tgt_read(t, x->data + at - at % x->element, values, each))
			return -1;
		for (k = 0; k + x->element <= each; k += x->element, n++)
			found += is_denormal(values + k, x->element);
	}
	return n ? (double)found / n : -1;
}

/* ---- a call */

/* Writes "float[512, 2048]". Returns the new length. */
static size_t put_sizes(const struct plan *plan, const struct tensor *x, char *to, size_t len)
{
	const char *between = len ? " and " : "";
	unsigned i;

	len += (size_t)snprintf(to + len, SIZES_BYTES - len, "%s%s[", between, type_of(plan, x));
	for (i = 0; i < x->words[MXBPF_IMPL_NDIM] && len < SIZES_BYTES; i++)
		len += (size_t)snprintf(to + len, SIZES_BYTES - len, "%s%u", i ? ", " : "",
					(unsigned)x->words[MXBPF_IMPL_SIZES + i]);
	if (len < SIZES_BYTES)
		len += (size_t)snprintf(to + len, SIZES_BYTES - len, "]");
	return len < SIZES_BYTES ? len : SIZES_BYTES - 1;
}

/* Reads it for all threads of a process, which takes a program of BPF. */
static void read_units(struct inputs *in, uint32_t tgid)
{
	struct buf all = {0};
	struct regs *regs = NULL;
	const struct mxbpf_regs *r;
	size_t i;

	in->nunits = 0;
	in->units_of = tgid;
	in->units_ns = clock_ns(CLOCK_MONOTONIC);
	if (!regs_open((pid_t)tgid, &regs, NULL) && !regs_read(regs, &all))
		for (i = 0; i < buf_count(&all, struct mxbpf_regs) && in->nunits < THREADS_MAX; i++) {
			r = buf_at(&all, const struct mxbpf_regs, i);
			if (r->mxcsr)
				in->units[in->nunits++] = (struct unit){r->tid, r->mxcsr & DENORMAL_0};
		}
	regs_close(regs);
	buf_fini(&all);
}

/* Returns true if the thread takes denormal values as 0, and also if that is not known: then there is no finding. */
static bool flushes(struct inputs *in, uint32_t tgid, uint32_t tid)
{
	unsigned i;

	if (in->units_of != tgid || clock_ns(CLOCK_MONOTONIC) - in->units_ns > UNITS_NS)
		read_units(in, tgid);
	for (i = 0; i < in->nunits; i++)
		if (in->units[i].tid == tid)
			return in->units[i].flushes;
	return true;
}

/* Reads one input of the call. Returns false if there is none, or if it changed meanwhile. */
static bool look_at_input(const struct tgt *t, const struct plan *plan, uint64_t ref, struct input_row *row,
			  char *sizes, size_t *len)
{
	struct tensor x;
	double share;

	if (!read_tensor(t, plan, ref, &x))
		return false;
	share = denormal_share(t, &x);
	if (!is_same(t, plan, ref, &x))
		return false;
	if (row->elements < x.words[MXBPF_IMPL_NUMEL])
		row->elements = x.words[MXBPF_IMPL_NUMEL];
	row->valued |= share >= 0;
	row->denormal |= share >= INPUTS_DENORMAL;
	if (x.words[MXBPF_IMPL_NDIM]) /* a number that Python passes is a tensor, too */
		*len = put_sizes(plan, &x, sizes, *len);
	return true;
}

/* The id of the text of sizes. Some programs have new ones all the time, so only the first TEXTS_MAX are kept as texts.
 */
static uint64_t text_id(struct inputs *in, uint32_t tgid, const char *text, size_t len)
{
	const uint64_t hash = hash_text(HASH_SEED, text, len);
	struct mxbpf_rec r = {.tgid = tgid, .ts_ns = clock_ns(CLOCK_MONOTONIC)};
	uint64_t *id = hash_get(&in->texts, hash, tgid);

	if (id)
		return *id;
	id = in->ntexts < TEXTS_MAX ? hash_put(&in->texts, hash, tgid) : NULL;
	if (!id)
		return hash | 1; /* ids of texts are odd */
	in->ntexts++;
	*id = ses_learn_stack(in->ses, &r, text, len);
	return *id;
}

/* The time since the call began, without that in which its thread was ready and had no CPU. */
static uint64_t elapsed(const struct input_row *row, const struct mxbpf_frame *f, uint64_t now)
{
	const uint64_t began = f->began.run_delay_ns, since = now > f->start_ns ? now - f->start_ns : 0;
	uint64_t cpu_ns, runq_ns;

	if (!began || tgt_peek_cpu((pid_t)row->tgid, (pid_t)f->tid, &cpu_ns, &runq_ns) || runq_ns < began)
		return since;
	return since > runq_ns - began ? since - (runq_ns - began) : 0;
}

/* The first tensor of a list counts, if there is one: the next register has their number. */
static bool is_tensor_arg(const struct mxbpf_arg *a, const struct mxbpf_frame *f)
{
	if (a->slot >= MXBPF_FRAME_REGS)
		return false;
	return a->kind == MXBPF_ARG_TENSOR ||
	       (a->kind == MXBPF_ARG_TENSORS && a->slot + 1 < MXBPF_FRAME_REGS && f->regs[a->slot + 1]);
}

void inputs_look(struct inputs *in, const struct tgt *t, const struct plan *plan, const struct mxbpf_frame *f)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct input_row row = {.tgid = (uint32_t)tgt_pid(t), .name_id = f->name_id, .looks = 1};
	const struct mxbpf_func_args *args;
	char sizes[SIZES_BYTES];
	unsigned i, n = 0;
	size_t len = 0;
	bool added;

	if (!f->regs[0] || f->func < plan->first_func ||
	    f->func - plan->first_func >= buf_count(&plan->args, struct mxbpf_func_args))
		return;
	args = buf_at(&plan->args, const struct mxbpf_func_args, f->func - plan->first_func);
	for (i = 0; i < args->n && i < MXBPF_ARGS_MAX && n < TENSORS_MAX; i++)
		if (is_tensor_arg(&args->args[i], f))
			n += look_at_input(t, plan, f->regs[args->args[i].slot], &row, sizes, &len);
	if (!n || tgt_gone(t))
		return;
	row.elapsed_ns = elapsed(&row, f, now);
	row.flushed = row.denormal && flushes(in, row.tgid, f->tid);
	row.sizes = text_id(in, row.tgid, sizes, len);
	if (!tbl_add(&in->found, &row, &added))
		in->err = -ENOMEM;
}
