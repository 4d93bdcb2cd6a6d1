// SPDX-License-Identifier: Apache-2.0
/* Writes an output of any kind for well-formed records with arbitrary contents, as an untrusted recording may have
 * them. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mxbpf_collective.h"
#include "mxbpf_config.h"
#include "mxbpf_gauge.h"
#include "mxbpf_kv.h"
#include "mxbpf_life.h"
#include "mxbpf_mark.h"
#include "mxbpf_memory.h"
#include "mxbpf_omp.h"
#include "mxbpf_queue.h"
#include "mxbpf_kernels.h"
#include "mxbpf_roofline.h"
#include "mxbpf_sample.h"
#include "mxbpf_sched.h"
#include "mxbpf_step.h"
#include "mxbpf_graph.h"
#include "view/view.h"

/* Few ids, so that records refer to each other. */
#define IDS 8

static const size_t bytes_of[] = {
	[MXBPF_SPAN] = sizeof(struct mxbpf_span),
	[MXBPF_AGG] = sizeof(struct mxbpf_agg),
	[MXBPF_TALLY] = sizeof(struct mxbpf_tally),
	[MXBPF_ALLOC] = sizeof(struct mxbpf_alloc),
	[MXBPF_EDGE] = sizeof(struct mxbpf_edge),
	[MXBPF_NAME] = sizeof(struct mxbpf_name),
	[MXBPF_MEM] = sizeof(struct mxbpf_mem),
	[MXBPF_AGG_MEM] = sizeof(struct mxbpf_agg_mem),
	[MXBPF_GROUP] = sizeof(struct mxbpf_group),
	[MXBPF_JOIN] = sizeof(struct mxbpf_join),
	[MXBPF_AGG_ACCOUNT] = sizeof(struct mxbpf_agg_account),
	[MXBPF_AGG_COUNTERS] = sizeof(struct mxbpf_agg_counters),
	[MXBPF_AGG_EXTENT] = sizeof(struct mxbpf_agg_extent),
	[MXBPF_SLOW] = sizeof(struct mxbpf_slow),
	[MXBPF_TEAM] = sizeof(struct mxbpf_team),
	[MXBPF_SCHED] = sizeof(struct mxbpf_sched),
	[MXBPF_OFF_CPU] = sizeof(struct mxbpf_off_cpu),
	[MXBPF_AGG_SCHED] = sizeof(struct mxbpf_agg_sched),
	[MXBPF_SAMPLE] = sizeof(struct mxbpf_sample),
	[MXBPF_GAUGE] = sizeof(struct mxbpf_gauge),
	[MXBPF_OPEN] = sizeof(struct mxbpf_open),
	[MXBPF_LIFE] = sizeof(struct mxbpf_life),
	[MXBPF_AGG_LIFE] = sizeof(struct mxbpf_agg_life),
	[MXBPF_WAIT] = sizeof(struct mxbpf_wait),
	[MXBPF_AGG_WAIT] = sizeof(struct mxbpf_wait),
	[MXBPF_KV] = sizeof(struct mxbpf_kv) + sizeof(struct mxbpf_kv_value),
	[MXBPF_AGG_KV] = sizeof(struct mxbpf_agg_kv),
	[MXBPF_STEP] = sizeof(struct mxbpf_step),
	[MXBPF_ITERATION] = sizeof(struct mxbpf_iteration),
	[MXBPF_MEM_OWNER] = sizeof(struct mxbpf_mem_owner),
	[MXBPF_MEM_TIME] = sizeof(struct mxbpf_mem_time),
	[MXBPF_MEM_FAILED] = sizeof(struct mxbpf_mem_failed),
	[MXBPF_MEM_HOLDER] = sizeof(struct mxbpf_mem_holder),
	[MXBPF_GPU_ALLOC] = sizeof(struct mxbpf_gpu_alloc),
	[MXBPF_AGG_GPU_ALLOC] = sizeof(struct mxbpf_agg_gpu_alloc),
	[MXBPF_GPU_INSIDE] = sizeof(struct mxbpf_gpu_inside),
	[MXBPF_GPU_USED] = sizeof(struct mxbpf_gpu_used),
	[MXBPF_INSTANT] = sizeof(struct mxbpf_instant),
	[MXBPF_VALUE] = sizeof(struct mxbpf_value),
	[MXBPF_ACTIVITY] = sizeof(struct mxbpf_activity),
	[MXBPF_LAUNCH] = sizeof(struct mxbpf_launch),
	[MXBPF_AGG_ACTIVITY] = sizeof(struct mxbpf_agg_activity),
	[MXBPF_GPU_DEVICE] = sizeof(struct mxbpf_gpu_device),
	[MXBPF_GPU_ACCOUNT] = sizeof(struct mxbpf_gpu_account),
	[MXBPF_AGG_GPU_WORK] = sizeof(struct mxbpf_agg_gpu_work),
	[MXBPF_AGG_GPU_STREAM] = sizeof(struct mxbpf_agg_gpu_stream),
	[MXBPF_AGG_GPU_JOIN] = sizeof(struct mxbpf_agg_gpu_join),
	[MXBPF_AGG_GPU_WAIT] = sizeof(struct mxbpf_agg_gpu_wait),
	[MXBPF_AGG_GPU_IDLE] = sizeof(struct mxbpf_agg_gpu_idle),
	[MXBPF_AGG_GPU_LAUNCH] = sizeof(struct mxbpf_agg_gpu_launch),
	[MXBPF_AGG_GPU_TYPES] = sizeof(struct mxbpf_agg_gpu_types),
	[MXBPF_GPU_IDLE] = sizeof(struct mxbpf_gpu_idle),
	[MXBPF_GPU_STEP] = sizeof(struct mxbpf_gpu_step),
	[MXBPF_GRAPH_NODE] = sizeof(struct mxbpf_graph_node),
	[MXBPF_AGG_GPU_GRAPH] = sizeof(struct mxbpf_agg_gpu_graph),
	[MXBPF_GPU_PATH] = sizeof(struct mxbpf_gpu_path),
	[MXBPF_GPU_SEQUENCE] = sizeof(struct mxbpf_gpu_sequence) + 2 * sizeof(uint64_t),
	[MXBPF_AGG_GPU_ROOF] = sizeof(struct mxbpf_agg_gpu_roof),
	[MXBPF_GPU_LIMITS] = sizeof(struct mxbpf_gpu_limits),
	[MXBPF_KERNEL_METRIC] = sizeof(struct mxbpf_kernel_metric),
	[MXBPF_AGG_KERNEL_METRICS] = sizeof(struct mxbpf_agg_kernel_metrics),
	[MXBPF_COLLECTIVE] = sizeof(struct mxbpf_collective),
	[MXBPF_AGG_COLLECTIVE] = sizeof(struct mxbpf_agg_collective),
	[MXBPF_AGG_OVERLAP] = sizeof(struct mxbpf_agg_overlap),
};
#define NKINDS (sizeof(bytes_of) / sizeof(bytes_of[0]))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The outputs go to stdout and are not needed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = open("/dev/null", O_WRONLY);

	return dup2(fd, STDOUT_FILENO) < 0;
}

static void tame_span(struct mxbpf_span *s)
{
	s->name_id %= IDS;
	s->args_id %= IDS;
	s->layer_id %= IDS;
	s->stack_id %= IDS;
	s->link %= IDS;
	s->cls = 1 + s->cls % (MXBPF_CLASS_MAX - 1);
	s->tid %= 4;
	if (!(s->cpu & 1)) /* keep its arbitrary times and numbers */
		return;
	s->h.ts_ns %= 64;
	s->dur_ns %= 64;
	s->seq %= IDS;
	s->origin %= IDS;
}

static void tame_activity(struct mxbpf_activity *a)
{
	a->cls = 1 + a->cls % (MXBPF_ACTIVITY_MAX - 1);
	a->name_id %= IDS;
	a->edge_id %= IDS;
	a->domain %= 2;
	a->dur_ns >>= 1;
	a->h.ts_ns >>= 1;
	if (!(a->pad & 1)) /* keep its arbitrary times and track */
		return;
	a->h.ts_ns %= 64;
	a->dur_ns %= 64;
	a->track.device %= 2;
	a->track.context %= 2;
	a->track.stream %= 2;
	a->graph %= 4;
	a->graph_node %= 8;
}

static void tame_launch(struct mxbpf_launch *l)
{
	l->edge_id %= IDS;
	l->domain = 1;
	l->tid = 1 + l->tid % 3;
	if (l->pad & 1)
		l->h.ts_ns %= 64;
}

static void tame_agg_activity(struct mxbpf_agg_activity *a)
{
	a->cls = 1 + a->cls % (MXBPF_ACTIVITY_MAX - 1);
	a->name_id %= IDS;
	a->device %= 2;
	a->unlaunched %= a->count ? a->count : 1;
	a->nbuckets = 0;
}

static void tame_work(struct mxbpf_agg_gpu_work *a)
{
	a->of %= MXBPF_WORK_OFS;
	a->cls %= MXBPF_CLASS_MAX;
	a->name_id %= IDS;
	a->layer_id %= IDS;
	a->nbuckets = 0;
}

static void tame_device(struct mxbpf_gpu_device *r)
{
	r->name_id %= IDS;
	r->device %= 2;
	r->major %= 16;
}

static void tame_idle(struct mxbpf_agg_gpu_idle *r)
{
	r->name_id %= IDS;
	r->stack_id %= IDS;
	r->device %= 2;
	r->cause %= MXBPF_IDLE_CAUSES;
}

static void tame_path(struct mxbpf_gpu_path *p)
{
	p->name_id %= IDS;
	p->part = 1 + p->part % (MXBPF_PATH_PARTS - 1);
	p->end_ns = p->h.ts_ns > p->end_ns ? p->h.ts_ns : p->end_ns;
}

static void tame_sequence(struct mxbpf_gpu_sequence *q)
{
	uint64_t *names = (uint64_t *)(q + 1);

	q->name_id %= IDS;
	q->count |= 1;
	q->n = 2;
	names[0] %= IDS;
	names[1] %= IDS;
}

static void tame_launches(struct mxbpf_agg_gpu_launch *l)
{
	l->call_id %= IDS;
	l->track.device %= 2;
	l->nbuckets = 0;
}

static void tame_piece(struct mxbpf_gpu_idle *r)
{
	r->name_id %= IDS;
	r->stack_id %= IDS;
	r->device %= 2;
	r->cause %= MXBPF_IDLE_CAUSES;
}

static void tame_node(struct mxbpf_graph_node *r)
{
	r->node = 1 + r->node % 8;
	r->original %= 8;
	r->tid = 1 + r->tid % 2;
}

static void tame_graph(struct mxbpf_agg_gpu_graph *r)
{
	r->name_id %= IDS;
	r->graph %= 4;
	r->captured %= MXBPF_CAPTURED_UNSEEN + 1;
	r->cls %= MXBPF_CLASS_MAX;
}

static void tame_roof(struct mxbpf_agg_gpu_roof *r)
{
	r->name_id %= IDS;
	r->args_id %= IDS;
}

static void tame_metric(struct mxbpf_kernel_metric *k)
{
	k->number %= MXBPF_KERNEL_COUNTERS;
	k->first %= 2;
	k->name_id %= IDS;
}

static void tame_metrics(struct mxbpf_agg_kernel_metrics *a)
{
	unsigned i;

	a->name_id %= IDS;
	for (i = 0; i < MXBPF_KERNEL_COUNTERS; i++) {
		a->counters[i].max |= a->counters[i].min;
		a->counters[i].sum |= a->counters[i].min;
	}
}

static void tame_collective(struct mxbpf_rec *r)
{
	struct mxbpf_collective *c = (struct mxbpf_collective *)r;
	struct mxbpf_agg_collective *a = (struct mxbpf_agg_collective *)r;

	if (r->kind == MXBPF_COLLECTIVE) {
		c->backend %= MXBPF_BACKENDS;
		c->op %= MXBPF_COLLECTIVE_OPS;
	} else if (r->kind == MXBPF_AGG_COLLECTIVE) {
		a->backend %= MXBPF_BACKENDS;
		a->op %= MXBPF_COLLECTIVE_OPS;
		a->matched %= a->count ? a->count : 1;
	}
}

/* Records of GPUs. */
static void tame_gpu(struct mxbpf_rec *r)
{
	switch (r->kind) {
	case MXBPF_ACTIVITY:
		tame_activity((struct mxbpf_activity *)r);
		break;
	case MXBPF_LAUNCH:
		tame_launch((struct mxbpf_launch *)r);
		break;
	case MXBPF_AGG_ACTIVITY:
		tame_agg_activity((struct mxbpf_agg_activity *)r);
		break;
	case MXBPF_AGG_GPU_WORK:
		tame_work((struct mxbpf_agg_gpu_work *)r);
		break;
	case MXBPF_AGG_GPU_IDLE:
		tame_idle((struct mxbpf_agg_gpu_idle *)r);
		break;
	case MXBPF_GPU_IDLE:
		tame_piece((struct mxbpf_gpu_idle *)r);
		break;
	case MXBPF_GPU_STEP:
		((struct mxbpf_gpu_step *)r)->device %= 2;
		break;
	case MXBPF_AGG_GPU_STREAM:
		((struct mxbpf_agg_gpu_stream *)r)->track.device %= 2;
		break;
	case MXBPF_AGG_GPU_LAUNCH:
		tame_launches((struct mxbpf_agg_gpu_launch *)r);
		break;
	case MXBPF_AGG_GPU_TYPES:
		((struct mxbpf_agg_gpu_types *)r)->device %= 2;
		break;
	case MXBPF_GPU_PATH:
		tame_path((struct mxbpf_gpu_path *)r);
		break;
	case MXBPF_GPU_SEQUENCE:
		tame_sequence((struct mxbpf_gpu_sequence *)r);
		break;
	case MXBPF_GRAPH_NODE:
		tame_node((struct mxbpf_graph_node *)r);
		break;
	case MXBPF_AGG_GPU_GRAPH:
		tame_graph((struct mxbpf_agg_gpu_graph *)r);
		break;
	case MXBPF_AGG_GPU_ROOF:
		tame_roof((struct mxbpf_agg_gpu_roof *)r);
		break;
	case MXBPF_GPU_LIMITS:
		((struct mxbpf_gpu_limits *)r)->device %= 2;
		break;
	case MXBPF_KERNEL_METRIC:
		tame_metric((struct mxbpf_kernel_metric *)r);
		break;
	case MXBPF_AGG_KERNEL_METRICS:
		tame_metrics((struct mxbpf_agg_kernel_metrics *)r);
		break;
	case MXBPF_COLLECTIVE:
	case MXBPF_AGG_COLLECTIVE:
		tame_collective(r);
		break;
	case MXBPF_GPU_DEVICE:
		tame_device((struct mxbpf_gpu_device *)r);
		break;
	}
}

/* Changes the fields that kind_check_next() would reject, so that the record passes. */
static void tame(struct mxbpf_rec *r)
{
	struct mxbpf_agg *a = (struct mxbpf_agg *)r;
	struct mxbpf_agg_mem *am = (struct mxbpf_agg_mem *)r;
	struct mxbpf_agg_account *aa = (struct mxbpf_agg_account *)r;
	struct mxbpf_name *n = (struct mxbpf_name *)r;
	uint32_t i;

	r->tgid %= 2;
	tame_gpu(r);
	switch (r->kind) {
	case MXBPF_SPAN:
		tame_span((struct mxbpf_span *)r);
		break;
	case MXBPF_AGG:
		a->name_id %= IDS;
		a->cls = 1 + a->cls % (MXBPF_CLASS_MAX - 1);
		a->nbuckets = 0;
		break;
	case MXBPF_AGG_MEM:
		am->name_id %= IDS;
		am->cls = 1 + am->cls % (MXBPF_CLASS_MAX - 1);
		break;
	case MXBPF_AGG_ACCOUNT:
		aa->name_id %= IDS;
		aa->cls = 1 + aa->cls % (MXBPF_CLASS_MAX - 1);
		break;
	case MXBPF_ALLOC:
		((struct mxbpf_alloc *)r)->cls %= MXBPF_CLASS_MAX;
		break;
	case MXBPF_TALLY:
		((struct mxbpf_tally *)r)->cls %= MXBPF_CLASS_MAX;
		break;
	case MXBPF_EDGE:
		((struct mxbpf_edge *)r)->src_cls %= MXBPF_CLASS_MAX;
		break;
	case MXBPF_GROUP:
		((struct mxbpf_group *)r)->id %= IDS;
		break;
	case MXBPF_NAME:
		n->id %= IDS;
		n->kind %= MXBPF_NAME_DOMAIN + 1;
		n->len = r->size - (uint32_t)sizeof(*n);
		for (i = 0; n->kind == MXBPF_NAME_ARGS && i < n->len; i++)
			n->text[i] = "[],8-0\"\n"[n->text[i] & 7];
		break;
	case MXBPF_AGG_GPU_WAIT:
	case MXBPF_KV:
	case MXBPF_AGG_KV:
	case MXBPF_LIFE:
	case MXBPF_AGG_LIFE:
	case MXBPF_WAIT:
	case MXBPF_AGG_WAIT:
	case MXBPF_AGG_EXTENT:
	case MXBPF_AGG_COUNTERS:
	case MXBPF_MEM_OWNER:
	case MXBPF_SLOW:
		((struct mxbpf_agg *)r)->name_id %= IDS; /* all of these have it at the same offset */
		break;
	default:
		tame_gpu(r);
	}
}

/* A record that is still refused must not get into a model. */
static bool passes(const struct mxbpf_rec *r)
{
	size_t pos = 0;
	bool bad;

	return kind_check_next(r, r->size, &pos, &bad);
}

/* Input: kind, length of a name's text / 512, then the bytes of the fixed part, which the text repeats. */
static int make(const uint8_t *data, size_t size, struct buf *b)
{
	uint16_t len, more;
	struct mxbpf_rec *r;
	unsigned kind;

	while (size > 2) {
		kind = data[0] % NKINDS;
		more = kind == MXBPF_NAME ? (uint16_t)(data[1] % 65 * 512) : 0;
		data += 2;
		size -= 2;
		if (!bytes_of[kind])
			continue;
		len = (uint16_t)(bytes_of[kind] + more);
		r = buf_add(b, len);
		if (!r)
			return -1;
		memset(r, 0, len);
		for (size_t i = 4; i < len && size; i++)
			((uint8_t *)r)[i] = data[i < size ? i : i % size];
		r->kind = (uint16_t)kind;
		r->size = len;
		tame(r);
		if (!passes(r))
			b->len -= len;
		data += size < bytes_of[kind] ? size : bytes_of[kind];
		size -= size < bytes_of[kind] ? size : bytes_of[kind];
	}
	return 0;
}

struct tape {
	struct buf recs;
	bool done;
};

static int tape_rewind(void *ctx)
{
	((struct tape *)ctx)->done = false;
	return 0;
}

static int tape_next(void *ctx, const void **recs, size_t *bytes)
{
	struct tape *t = ctx;

	*recs = t->recs.data;
	*bytes = t->recs.len;
	t->done = !t->done;
	return t->done && *bytes;
}

static const struct view_ops *chosen(unsigned byte)
{
	unsigned n = 0;

	while (view_registry[n])
		n++;
	return view_registry[byte % n];
}

/* Data sets are folders. FUZZ_DIR is a folder in memory for them; without it they are left out. */
static struct out_dir *folder(const struct view_ops *ops)
{
	const char *dir = getenv("FUZZ_DIR");
	struct out_dir *d = NULL;
	char path[4096];
	struct err e = {0};

	snprintf(path, sizeof(path), "%s/%d", dir ? dir : "", (int)getpid());
	if (dir && out_dir_open(path, ops->mark, "{}", &d, &e))
		abort();
	return d;
}

/* A lack of memory, which an input can cause by its own size, is no defect. */
static void write_one(struct tape *t, struct mdl *m, struct mdl_session *s, struct view_opts *opts,
		      const struct view_ops *ops)
{
	struct view_source source = {tape_rewind, tape_next, t, t->recs.len};
	const struct view_input in = {s, m, &source};
	struct out_dir *dir = ops->mark ? folder(ops) : NULL;
	struct err e = {0};
	struct out *o = NULL;

	if (ops->mark && !dir)
		return;
	opts->dir = dir;
	if (!dir && out_open("-", false, &o, &e))
		abort();
	if (view_write(ops, &in, opts, o, &e) && (e.code != -ENOMEM || !e.why[0]))
		abort();
	if (o)
		out_commit(o, &e);
	out_dir_close(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mdl_session s = {.mxbpf_version = "",
				.comm = "c",
				.cmdline = "",
				.hostname = "h",
				.class_title = {NULL, "api", "operator", "wait", "kernel", "task", "frame", "event",
						"step", "data", "kvstore", "custom"},
				.mem_title = "memory",
				.start_mono_ns = 32};
	struct tape t = {0};
	struct mdl *m = mdl_new(), *sum;

	if (size > 3 && m && !make(data + 3, size - 3, &t.recs) && !mdl_feed(m, t.recs.data, t.recs.len)) {
		const struct view_ops *ops = chosen(data[2]);
		struct view_opts opts = {.sort = data[0] % VIEW_SORT_NKEYS,
					 .by = data[1] % VIEW_BY_NWORDS,
					 .backward = data[1] & 0x80,
					 .ascending = data[0] & 0x80,
					 .top = data[0] & 0x40 ? 2 : 0};

		s.details = data[1] & 0x40 ? ~0u : 0;
		s.account = data[1] & 0x10;
		s.held = s.life = s.sched = data[1] & 0x08;
		s.trace_form = data[1] & 0x20 ? "kineto" : NULL;
		sum = data[0] & 0x20 ? mdl_sum(m) : NULL;
		write_one(&t, sum ? sum : m, &s, &opts, ops);
		mdl_free(sum);
	}
	mdl_free(m);
	buf_fini(&t.recs);
	return 0;
}
