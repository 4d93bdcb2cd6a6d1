// SPDX-License-Identifier: Apache-2.0
#include "cmd/serve/otel.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fmt.h"
#include "metrics/metrics.h"

#define ENDPOINT     "ENDPOINT"
#define METRICS_PATH "/v1/metrics"
#define NS_PER_MS    1000000ull
#define TIMEOUT_MS   (600 * 1000ull) /* the longest */

/* An empty variable counts as one that is not set. */
static const char *variable(const char *prefix, const char *name)
{
	char whole[64];
	const char *value;

	snprintf(whole, sizeof(whole), "%s%s", prefix, name);
	value = getenv(whole);
	return value && *value ? value : NULL;
}

const char *otel_variable(const char *name)
{
	const char *own = variable("OTEL_EXPORTER_OTLP_METRICS_", name);

	return own ? own : variable("OTEL_EXPORTER_OTLP_", name);
}

/* The environment of a host may switch off what it sets up. */
static bool is_off(void)
{
	const char *disabled = variable("OTEL_", "SDK_DISABLED"), *exporter = variable("OTEL_", "METRICS_EXPORTER");

	return (disabled && !strcasecmp(disabled, "true")) || (exporter && !strcmp(exporter, "none"));
}

bool otel_asks(const char *given)
{
	return given ? strcmp(given, "none") != 0 : !is_off() && otel_variable(ENDPOINT);
}

/* Adds the path of metrics to a URL that is for all signals. */
static char *with_path(const char *base)
{
	size_t len = strlen(base);
	char *url = NULL;

	while (len && base[len - 1] == '/')
		len--;
	if (len >= strlen(METRICS_PATH) &&
	    !strncmp(base + len - strlen(METRICS_PATH), METRICS_PATH, strlen(METRICS_PATH)))
		return strdup(base);
	return asprintf(&url, "%.*s" METRICS_PATH, (int)len, base) < 0 ? NULL : url;
}

char *otel_url(const char *given, struct err *e)
{
	const char *own = variable("OTEL_EXPORTER_OTLP_METRICS_", ENDPOINT), *protocol = otel_variable("PROTOCOL");
	char *url;

	if (!otel_asks(given))
		return NULL;
	if (!given && protocol && strcmp(protocol, "http/protobuf")) {
		err_set(e, ERR_USAGE, -EINVAL,
			"OTEL_EXPORTER_OTLP_PROTOCOL asks for another protocol than http/protobuf, the only one that "
			"mxbpf speaks; set OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf, or give --otlp none");
		return NULL;
	}
	url = given ? with_path(given) : own ? strdup(own) : with_path(otel_variable(ENDPOINT));
	if (!url)
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return url;
}

uint64_t otel_timeout_ns(struct err *e)
{
	const char *text = otel_variable("TIMEOUT");
	unsigned long long ms;
	char *end;

	if (!text)
		return 0;
	ms = strtoull(text, &end, 10);
	if (*end || *text == '-' || !ms || ms > TIMEOUT_MS) {
		err_set(e, ERR_USAGE, -EINVAL,
			"OTEL_EXPORTER_OTLP_TIMEOUT is a number of milliseconds, at most 600000");
		return 0;
	}
	return ms * NS_PER_MS;
}

/* ---- lists "name=value,name=value", whose values are percent-encoded */

static int hex_of(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 32) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes a text without the blanks around it, in place. Returns false if it has control characters. */
static bool decode(char *text)
{
	char *to = text, *from = text + strspn(text, " \t");
	size_t len = strlen(from);
	int high, low;

	while (len && strchr(" \t", from[len - 1]))
		from[--len] = '\0';
	for (; *from; from++, to++) {
		*to = *from;
		high = *from == '%' ? hex_of(from[1]) : -1;
		low = high >= 0 ? hex_of(from[2]) : -1;
		if (low >= 0) {
			*to = (char)(high << 4 | low);
			from += 2;
		}
		if ((unsigned char)*to < ' ' || *to == 127)
			return false;
	}
	*to = '\0';
	return true;
}

/* Calls fn for each pair, decoded. */
static int each_pair(const char *name, const char *list, int (*fn)(void *ctx, const char *key, const char *value),
		     void *ctx, struct err *e)
{
	char *copy = strdup(list), *rest = copy, *item, *value;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (item = strsep(&rest, ","))) {
		value = strchr(item, '=');
		if (!item[strspn(item, " \t")])
			continue;
		if (value)
			*value++ = '\0';
		if (!value || !decode(item) || !decode(value) || !*item || !fmt_is_utf8(item, strlen(item)))
			err = err_set(e, ERR_USAGE, -EINVAL,
				      "%s is a list name=value,name=value, with %%XX for blanks, commas and the like",
				      name);
		else
			err = fn(ctx, item, value);
	}
	free(copy);
	return err ? err_set(e, ERR_RUNTIME, err, "out of memory") : 0;
}

static int add_header(void *ctx, const char *key, const char *value)
{
	struct buf *lines = ctx;
	char *line = NULL;

	if (asprintf(&line, "%s: %s", key, value) < 0)
		return -ENOMEM;
	if (!buf_put(lines, &line, sizeof(line)))
		return 0;
	free(line);
	return -ENOMEM;
}

char **otel_headers(const char *name, struct err *e)
{
	const char *list = getenv(name);
	struct buf lines = {0};
	char *end = NULL;

	if (list)
		each_pair(name, list, add_header, &lines, e);
	if (buf_put(&lines, &end, sizeof(end)))
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (!e->code)
		return (char **)(void *)lines.data;
	while (lines.len >= sizeof(end)) {
		lines.len -= sizeof(end);
		free(*buf_at(&lines, char *, lines.len / sizeof(end)));
	}
	buf_fini(&lines);
	return NULL;
}

void otel_headers_free(char **headers)
{
	size_t i;

	for (i = 0; headers && headers[i]; i++)
		free(headers[i]);
	free(headers);
}

/* ---- attributes of the resource */

static const char *otel_find(const struct buf *resource, const char *name)
{
	size_t i;

	for (i = 0; i < buf_count(resource, struct met_attribute); i++)
		if (!strcmp(buf_at(resource, struct met_attribute, i)->name, name))
			return buf_at(resource, struct met_attribute, i)->value;
	return NULL;
}

/* Adds an attribute unless there is one of this name. */
static int add_attribute(void *ctx, const char *name, const char *value)
{
	struct met_attribute a;
	char *safe;
	size_t len;

	if (otel_find(ctx, name))
		return 0;
	len = fmt_exact(NULL, 0, value, strlen(value));
	safe = malloc(len + 1);
	if (safe)
		fmt_exact(safe, len + 1, value, strlen(value));
	a = (struct met_attribute){strdup(name), safe};
	if (a.name && safe && !buf_put(ctx, &a, sizeof(a)))
		return 0;
	free((char *)(uintptr_t)a.name);
	free(safe);
	return -ENOMEM;
}

/* The instance tells hosts apart: receivers like Prometheus make a label of it, and none of host.name. */
int otel_resource(struct buf *out, struct err *e)
{
	const char *service = variable("OTEL_", "SERVICE_NAME"), *list = variable("OTEL_", "RESOURCE_ATTRIBUTES");
	char host[HOST_NAME_MAX + 1] = "";
	int err;

	gethostname(host, sizeof(host) - 1);
	err = service ? add_attribute(out, "service.name", service) : 0;
	if (!err && list && each_pair("OTEL_RESOURCE_ATTRIBUTES", list, add_attribute, out, e))
		return e->code;
	err = err ? err : add_attribute(out, "service.name", "mxbpf");
	err = err ? err : add_attribute(out, "service.version", MXBPF_VERSION);
	err = err ? err : add_attribute(out, "host.name", host);
	err = err ? err : add_attribute(out, "service.instance.id", otel_find(out, "host.name"));
	return err ? err_set(e, ERR_RUNTIME, err, "out of memory") : 0;
}

void otel_resource_fini(struct buf *resource)
{
	struct met_attribute *a;
	size_t i;

	for (i = 0; i < buf_count(resource, *a); i++) {
		a = buf_at(resource, struct met_attribute, i);
		free((char *)(uintptr_t)a->name);
		free((char *)(uintptr_t)a->value);
	}
	buf_fini(resource);
}
