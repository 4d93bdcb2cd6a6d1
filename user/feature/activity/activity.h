/* SPDX-License-Identifier: Apache-2.0 */
/* What GPUs did: kernels, copies, sets and waits, and the calls that launched them. */
#ifndef FEATURE_ACTIVITY_H
#define FEATURE_ACTIVITY_H

#include "model/feature.h"
#include "mxbpf_graph.h"

#define GPU_BIT (1u << 1) /* in mdl_session.features: the session looks at GPUs */

extern const struct mdl_feature feature_activity;
extern const struct view_sheet sheet_gpu_kernels, sheet_gpu_copies, sheet_gpu_sets, sheet_gpu_waits, sheet_gpu_work,
	sheet_gpu_modules, sheet_gpu_layers, sheet_gpu_graphs, sheet_gpu_streams, sheet_gpu_devices, sheet_gpu_loss;
extern const struct view_trace_feature activity_trace;
extern const struct tbl_metric activity_seen; /* for how long GPUs were watched */

/* Activities of one process, device, class, name, direction and memory kinds. */
struct activity_row {
	struct mxbpf_agg_activity a;
	uint64_t hist[MXBPF_HIST_BUCKETS]; /* number of activities by duration */
};

/* Work of calls of one class and name, of a layer, or of a CUDA graph; see enum mxbpf_gpu_work_of. */
struct activity_work {
	struct mxbpf_agg_gpu_work a;
	uint64_t hist[MXBPF_HIST_BUCKETS]; /* number of launches by latency */
};

/* A call that launched work. */
struct activity_call {
	uint64_t start_ns, end_ns;
	uint64_t edge_id, call_id;
	uint32_t tgid, tid;
	uint32_t previous; /* 1 + index of the one before with the same ids; 0: none */
	uint16_t domain;
};

/*
 * The latest launches, which have numbers in the order in which they came. They are borrowed until the next launch.
 * activity_call_of() returns the last one with the ids that is not later than ns, else the first one, else NULL.
 */
const struct activity_call *activity_call_of(const struct mdl *m, uint32_t tgid, unsigned domain, uint64_t edge_id,
					     uint64_t ns);
const struct activity_call *activity_calls(const struct mdl *m, size_t *n);
uint64_t activity_call_number(const struct mdl *m, const struct activity_call *l);
const struct activity_call *activity_call_at(const struct mdl *m, uint64_t number); /* NULL: it was forgotten */
uint64_t activity_calls_lost_ns(const struct mdl *m); /* latest end of one that was forgotten */
/* Lets hooks `settled` see what can be seen already, for a feature that keeps much until then. Returns 0 or -ENOMEM. */
int activity_settle_work(struct mdl *m);
/* Appends struct win_work: what hooks `settled` have not seen yet, in the same order. Returns 0 or -ENOMEM. */
int activity_pending(const struct mdl *m, struct buf *out);

/* Return *n rows in no order. Rows can have count 0, and no launches and activities, which outputs leave out. */
const struct activity_row *const *activity_rows(const struct mdl *m, size_t *n);
const struct activity_work *const *activity_work_rows(const struct mdl *m, size_t *n);
/* Returns *n rows in no order: which operators captured the work of graphs. */
const struct mxbpf_agg_gpu_graph *activity_graphs(const struct mdl *m, size_t *n);

/* Returns whether a call of CUDA makes its thread wait for a device. */
bool activity_is_wait(const char *name, size_t len);
/* Calls of CUDA in which a thread waited for a device, by thread and name. */
struct activity_wait {
	uint64_t name_id; /* "cudaStreamSynchronize" */
	uint64_t count, total_ns;
	uint32_t tgid, tid;
};
const struct activity_wait *activity_waits(const struct mdl *m, size_t *n);
/* Returns how long activities of a process were seen in a window of this duration: while CUPTI was held. */
uint64_t activity_seen_ns(const struct mdl *m, uint32_t tgid, uint64_t window_ns);

/* Finds the work that a process launched in an iteration. Returns false if it is not known. */
bool activity_of_iteration(const struct mdl *m, uint32_t tgid, uint64_t start_ns, uint64_t dur_ns,
			   struct mxbpf_gpu_work *work);

/* Appends struct mxbpf_agg_gpu_stream: the streams and devices that had work. Returns 0 or -ENOMEM. */
int activity_streams(const struct mdl *m, struct buf *out);

/* The launches of a process, and those that could not be joined. */
struct activity_join {
	uint64_t launches;	/* all of them */
	uint64_t without_work;	/* launches without an activity so far */
	uint64_t late_launches; /* launches that came when the spans of their time were forgotten */
	uint64_t late_spans;	/* spans that ended when launches since their start were forgotten */
	uint32_t tgid;
};
/* Return *n records, one for each process, and for each device of each process. */
const struct activity_join *activity_joins(const struct mdl *m, size_t *n);
const struct mxbpf_gpu_device *activity_devices(const struct mdl *m, size_t *n);
#define ACTIVITY_UUID_BYTES 41
/* Whether a device is an instance of a GPU that MIG divides. */
bool activity_is_instance(const struct mxbpf_gpu_device *d);
/* Writes "GPU-..." or "MIG-..." as nvidia-smi does, or "" if it is not known. whole: of the GPU of an instance. */
const char *activity_uuid(const struct mxbpf_gpu_device *d, bool whole, char buf[ACTIVITY_UUID_BYTES]);
/* Returns the accounts of CUPTI's records since the model began. */
const struct mxbpf_gpu_account *activity_accounts(const struct mdl *m, size_t *n);

struct mxbpf_gpu_shared;
/* A sentence that says why there are no records of the GPU. Returns buf. */
const char *ses_gpu_why(const struct mxbpf_gpu_shared *g, char buf[512]);
/* Returns advice on an error code of CUPTI (CUptiResult). The text is constant. */
const char *ses_gpu_result(uint32_t result);
/* Says why so many activities of CUDA graphs have no launch. */
const char *ses_gpu_unjoined(const struct mxbpf_gpu_shared *g, uint64_t n, char buf[512]);

#endif
