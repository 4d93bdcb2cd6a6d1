// SPDX-License-Identifier: Apache-2.0
/* Which files have the rows of a process. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fmt.h"
#include "view/dataset/dataset.h"

#define HOST_BYTES 64 /* of a host's name that are kept in the name of a folder */

/*
 * The value of a partition, as Hive writes it: letters, digits and a few signs stand for themselves, everything else
 * is %XX. Engines decode it, so it must be UTF-8.
 */
static void parts_put_value(const char *text, char to[3 * HOST_BYTES + 1])
{
	char safe[HOST_BYTES];
	size_t n = 0, i;

	fmt_exact(safe, sizeof(safe), text, strlen(text)); /* cuts between characters */
	for (i = 0; safe[i]; i++) {
		const unsigned char c = (unsigned char)safe[i];
		const bool plain =
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("-._", c);

		n += (size_t)snprintf(to + n, 4, plain ? "%c" : "%%%02X", c);
	}
	strcpy(to + n, n ? "" : "unknown");
}

/* -1: the process has no rank. Engines take the column for a number, so there is no word for it. */
static int64_t rank_of(const struct mdl_session *s, const struct mdl_labels *l)
{
	if (l && l->numbers[MDL_RANK] != MDL_NO_NUMBER)
		return l->numbers[MDL_RANK];
	return s->world_size ? (int64_t)s->rank : -1;
}

/* Returns 1 + the index of the part, or 0 without memory. */
static uint64_t find_or_add(struct dataset *d, const struct mdl_labels *l)
{
	const struct mdl_session *s = d->s.in->session;
	const char *host = l && l->hostname && *l->hostname ? l->hostname : s->hostname;
	char value[3 * HOST_BYTES + 1], path[512];
	struct dataset_part part;
	uint64_t *at;

	parts_put_value(host ? host : "", value);
	snprintf(path, sizeof(path), "host=%s/rank=%" PRId64 "/day=%s", value, rank_of(s, l), d->day);
	at = hash_put(&d->of_paths, hash_text(HASH_SEED, path, strlen(path)), 0);
	if (!at || *at)
		return at ? *at : 0;
	part.path = strdup(path);
	if (!part.path || buf_put(&d->parts, &part, sizeof(part))) {
		free(part.path);
		return 0;
	}
	return *at = dataset_nparts(d);
}

static uint64_t recording_id(const struct mdl_session *s)
{
	const uint64_t numbers[] = {s->start_unix_ns, s->start_mono_ns, s->pid};
	uint64_t id = hash_text(HASH_SEED, (const char *)numbers, sizeof(numbers));

	if (s->hostname)
		id = hash_text(id, s->hostname, strlen(s->hostname));
	if (s->boot_id)
		id = hash_text(id, s->boot_id, strlen(s->boot_id));
	return id & INT64_MAX;
}

int dataset_parts_init(struct dataset *d)
{
	const struct mdl_session *s = d->s.in->session;
	const time_t start = (time_t)(s->start_unix_ns / 1000000000);
	uint64_t *at, index;
	struct tm tm = {0};
	size_t i;

	d->recording = recording_id(s);
	gmtime_r(&start, &tm);
	if (!strftime(d->day, sizeof(d->day), "%Y-%m-%d", &tm))
		strcpy(d->day, "1970-01-01"); /* a year of more than four digits, in a damaged file */
	if (!find_or_add(d, mdl_labels_of(s, s->pid)))
		return -ENOMEM;
	for (i = 0; i < s->nlabels; i++) {
		index = find_or_add(d, &s->labels[i]);
		at = index ? hash_put(&d->at, s->labels[i].pid, 0) : NULL;
		if (!at)
			return -ENOMEM;
		*at = index;
	}
	return 0;
}

size_t dataset_part_of(const struct dataset *d, uint32_t tgid)
{
	const uint64_t *at = tgid ? hash_get(&d->at, tgid, 0) : NULL;

	return at ? *at - 1 : 0;
}

void dataset_parts_fini(struct dataset *d)
{
	size_t i;

	for (i = 0; i < dataset_nparts(d); i++)
		free(buf_at(&d->parts, struct dataset_part, i)->path);
	buf_fini(&d->parts);
	hash_fini(&d->at);
	hash_fini(&d->of_paths);
}
