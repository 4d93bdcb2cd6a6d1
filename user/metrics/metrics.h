/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the processes that a session watches, as Prometheus understands them. The models of the session's
 * intervals are added up, so that counters never fall: a process that ends and starts again goes on with the series of
 * its labels, which have no process number. It knows models only; others decide where the text goes.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

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

/* Adds an interval, whose model has rows for each process. Returns 0, or -ENOMEM if some of it was not added. */
int met_take(struct met *m, const struct mdl_interval *in);

enum met_form {
	MET_PROMETHEUS,	 /* text format 0.0.4 */
	MET_OPENMETRICS, /* 1.0.0 */
	MET_FORMS,
};
extern const char *const met_content_types[MET_FORMS];
/* Appends the text of all series. Returns 0 or -ENOMEM. */
int met_write(const struct met *m, enum met_form form, struct buf *out);

#endif
