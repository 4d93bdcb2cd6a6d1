/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the formats: takes records in any order, and makes the recording of them. It sorts them by time, finds which
 * spans of a thread are nested, and delivers them as the source of a hub, as a live session does.
 *
 * Times are ns since 1970 if the file says so, else ns of its own clock. They become CLOCK_MONOTONIC of the recording
 * unchanged. Records are those of include/, of kinds that sources deliver: spans, activities, launches, allocations,
 * ranges, instants, devices of GPUs. Fields of a span that follow from nesting (self_ns, self_alloc_bytes, alloc_bytes)
 * need not be set.
 */
#ifndef IMPORT_SINK_H
#define IMPORT_SINK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "base/err.h"
#include "model/session.h"
#include "mxbpf_event.h"
#include "mxbpf_table.h"
#include "mxbpf_track.h"

struct sink;

/* A format. */
struct import_format {
	const char *name;   /* for messages: "PyTorch trace" */
	const char *source; /* of its records, in outputs: "torch.profiler" */
	/* Returns whether a file is one of these, by n bytes of its start, after decompression. */
	bool (*is)(int fd, const void *head, size_t n);
	/*
	 * Reads the file from its start. Returns 0, or -errno with e set. The file may be damaged or hostile: memory is
	 * bounded for any size.
	 */
	int (*read)(struct sink *s, int fd, struct err *e);
};
extern const struct import_format import_kineto, import_nsys, import_nvprof, import_mxnet, import_mxnet_table;

/*
 * Returns the id of a text, and makes it known; 0 without memory, which the sink remembers. Equal texts of a kind have
 * one id. Texts are cut at the limits of mxbpf_name.h.
 */
uint64_t sink_name(struct sink *s, enum mxbpf_name_kind kind, const char *text, size_t len);
/* The id of an annotation's name in a domain. The same name in another domain has another id. 0: as sink_name(). */
uint64_t sink_domain_name(struct sink *s, const char *domain, size_t domain_len, const char *text, size_t len);
/* The name of a thread. */
void sink_thread(struct sink *s, uint32_t tgid, uint32_t tid, const char *text, size_t len);

/*
 * Takes a checked record (records/kinds.h). A record with tgid 0 belongs to the process of the session. Spans that
 * overlap others of their thread without being nested get MXBPF_SPAN_ASYNC. Returns 0, or an error that ends the
 * reading: -ENOMEM, or that of the disk.
 */
int sink_put(struct sink *s, const struct mxbpf_rec *r);

/*
 * Takes a row of a table (struct mxbpf_agg, mxbpf_value) from a format that has no single records. The session is then
 * one of sums (stats). Returns as sink_put().
 */
int sink_row(struct sink *s, const struct mxbpf_rec *r);

/* Times of the file are rounded to so many ns: a nested span may seem to end that much later than the one around it. */
void sink_rounded(struct sink *s, uint64_t ns);

/* The bytes of allocations are how many the device has after them, from 0 on, and not how many they add. */
void sink_levels(struct sink *s);

/* Counts records that the other profiler lost, or that cannot be taken over: they are loss of the recording. */
void sink_lost(struct sink *s, uint64_t n);

/*
 * The description of the session, to be filled by the format: pid, comm, class_title, mem_title, devices, trace_form,
 * rank, world_size, details (enum mxbpf_detail: arguments, stacks); start_unix_ns: ns since 1970 at time 0 of the
 * file's clock, if the file says it. What stays empty is filled by the sink: the command line with the path, the window
 * with the first start and the last end. Strings are owned.
 */
struct mdl_session *sink_about(struct sink *s);
/*
 * Describes the runtime of the session as its adapter does: titles of tables, types of devices, the form of timelines.
 * What is set already stays. NULL: it is not known. Returns 0 or -ENOMEM.
 */
int sink_runtime(struct sink *s, const struct adp *a);
/* Notes that every output shows. */
int sink_note(struct sink *s, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Fills a span, activity or launch with the header for its kind; the caller fills the rest. */
struct mxbpf_span sink_span(uint32_t tgid, uint32_t tid, uint64_t start_ns, uint64_t dur_ns, uint64_t name_id,
			    enum mxbpf_class cls);
struct mxbpf_activity sink_activity(enum mxbpf_activity_class cls, uint64_t start_ns, uint64_t dur_ns,
				    uint64_t name_id);
/* A call of CUDA, and the launch that it is, if it is one by its name. */
int sink_cuda_call(struct sink *s, const struct mxbpf_span *call, const char *name, uint64_t correlation);

#endif
