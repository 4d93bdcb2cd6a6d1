/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment says to all senders of OTLP (OpenTelemetry's specification of OTEL_... variables). An error
 * names the variable, never its value, which may be a secret.
 */
#ifndef CMD_SERVE_OTEL_H
#define CMD_SERVE_OTEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Whether there is a collector for metrics. given: --otlp, which counts more; NULL: it was not given. */
bool otel_asks(const char *given);
/* Its URL, owned by the caller; NULL: none, or an error. */
char *otel_url(const char *given, struct err *e);
/* OTEL_EXPORTER_OTLP_METRICS_name, else OTEL_EXPORTER_OTLP_name; NULL: neither is set. Borrowed. */
const char *otel_variable(const char *name);
uint64_t otel_timeout_ns(struct err *e); /* 0: it is not said */
/* A variable "name=value,..." as lines "name: value". They end with NULL; the caller frees them and the list. */
char **otel_headers(const char *variable, struct err *e);
void otel_headers_free(char **headers); /* NULL is legal */
/* Appends what describes this sender: struct met_attribute with owned texts. 0, or -errno with e set. */
int otel_resource(struct buf *out, struct err *e);
void otel_resource_fini(struct buf *resource);

#endif
