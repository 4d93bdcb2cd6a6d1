/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the processes that a session watches, as Prometheus understands them. The models of the session's
 * intervals are added up, so that counters never fall: a process that ends and starts again goes on with the series of
 * its labels, which have no process number. It knows models only; others decide where the text goes.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/model.h"
#include "model/session.h"

#define MET_NAMES_MAX  20    /* names of a kind and a job that have series of their own; further ones are `other` */
#define MET_SERIES_MAX 16384 /* what would need further ones is counted in mxbpf_series_left_out_total */
#define MET_KEEP_NS    3600000000000ull /* series without news for so long make room for new ones */

struct met;

struct met *met_new(void);    /* NULL: out of memory */
void met_free(struct met *m); /* NULL is legal */

/*
 * From now on a job whose name, or the name of whose process, matches the first part of a rule "GLOB=NAME" is called by
 * the second. The first rule that matches counts. The rules are borrowed until they are others; NULL, 0: there are
 * none.
 */
void met_name_jobs(struct met *m, const char *const *rules, unsigned n);
/* Adds an interval, whose model has rows for each process. Returns 0, or -ENOMEM if some of it was not added. */
int met_take(struct met *m, const struct mdl_interval *in);
/* Takes only what mxbpf itself is and uses: all that there is before the first interval has ended. */
void met_take_self(struct met *m, const char *version);

/*
 * A recording that has an iteration is its exemplar in OpenMetrics: the bucket of the iteration names the file. When it
 * is written, its process may have ended, so met_iterations() finds the series before. 0: there is none.
 */
#define MET_RECORDING_BYTES 96 /* OpenMetrics permits 128 characters with the name of the label */
struct met_recorded {
	uint64_t series; /* of met_iterations() */
	uint64_t dur_ns, unix_ns;
	char file[MET_RECORDING_BYTES]; /* without its folder */
};
uint64_t met_iterations(struct met *m, const struct mdl_interval *in, uint32_t tgid);
void met_record(struct met *m, const struct met_recorded *r);

/* What the last interval showed of each job, borrowed until the next one. Not NULL. */
const struct mdl_found *met_found(const struct met *m, size_t *n);

enum met_form {
	MET_PROMETHEUS,	 /* text format 0.0.4 */
	MET_OPENMETRICS, /* 1.0.0 */
	MET_FORMS,
};
extern const char *const met_content_types[MET_FORMS];
/* Appends the text of all series. Returns 0 or -ENOMEM. */
int met_write(const struct met *m, enum met_form form, struct buf *out);

/* An attribute of what sends metrics: host.name and the like. Borrowed; the value is valid UTF-8. */
struct met_attribute {
	const char *name, *value;
};
/*
 * Appends all series as an ExportMetricsServiceRequest of OTLP, in protobuf. They have the names and labels of the
 * text, without _total, and are cumulative. Returns 0 or -ENOMEM.
 */
int met_write_otlp(const struct met *m, const struct met_attribute *resource, size_t n, struct buf *out);
/*
 * Reads the partial success of an ExportMetricsServiceResponse: how many points were rejected, and the reason, which
 * is untrusted, borrowed, and not terminated. Returns false if the bytes are no such message.
 */
bool met_read_otlp(const void *data, size_t len, uint64_t *rejected, const char **why, size_t *why_len);

/* The labels of a process as they stand in the text, borrowed until the next interval. NULL: it is not known. */
const char *met_labels_of(const struct met *m, uint32_t tgid);
/* Calls fn for each label of such a text, with terminated texts. Returns the first result that is not 0, or 0. */
int met_each_label(const char *labels, int (*fn)(void *ctx, const char *name, const char *value), void *ctx);

#endif
