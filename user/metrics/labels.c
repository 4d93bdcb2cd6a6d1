// SPDX-License-Identifier: Apache-2.0
/* Labels of processes, as text that stands between the braces of a sample. */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "metrics/priv.h"
#include "target/target.h"

void met_labels_begin(struct met_labels *l, const char *labels)
{
	l->len = (size_t)snprintf(l->text, sizeof(l->text), "%s", labels);
}

void met_labels_append(struct met_labels *l, const char *labels)
{
	const size_t room = sizeof(l->text) - l->len, before = l->len;
	const int n = snprintf(l->text + l->len, room, "%s%s", l->len ? "," : "", labels);

	if (n > 0 && (size_t)n < room)
		l->len += (size_t)n;
	l->text[n > 0 && (size_t)n < room ? l->len : before] = '\0';
}

void met_label(struct met_labels *l, const char *name, const char *value, size_t len)
{
	char safe[MET_LABEL_BYTES];
	const size_t before = l->len;
	const char *p;
	int n;

	if (!len)
		return;
	fmt_utf8(safe, sizeof(safe), value, len);
	n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s=\"", l->len ? "," : "", name);
	l->len += n > 0 ? (size_t)n : 0;
	for (p = safe; *p && l->len + 4 < sizeof(l->text); p++) {
		if (*p == '\\' || *p == '"')
			l->text[l->len++] = '\\';
		l->text[l->len++] = *p;
	}
	if (*p || l->len + 2 > sizeof(l->text)) /* a label without its end would spoil all others */
		l->len = before;
	else
		l->text[l->len++] = '"';
	l->text[l->len] = '\0';
}

void met_label_text(struct met_labels *l, const char *name, const char *value)
{
	met_label(l, name, value, value ? strlen(value) : 0);
}

/* Copies a value up to its closing quote, without backslashes. Returns what follows the quote. */
static const char *unescape(const char *p, char *to, size_t cap)
{
	size_t len = 0;

	for (; *p && *p != '"'; p++) {
		p += *p == '\\' && p[1];
		if (len + 1 < cap)
			to[len++] = *p;
	}
	to[len] = '\0';
	return *p ? p + 1 : p;
}

int met_each_label(const char *labels, int (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
	char name[MET_LABEL_BYTES], value[MET_LABELS_BYTES];
	const char *p = labels;
	int err = 0;
	size_t n;

	while (*p && !err) {
		n = strcspn(p, "=");
		snprintf(name, sizeof(name), "%.*s", (int)n, p);
		p = p[n] && p[n + 1] ? unescape(p + n + 2, value, sizeof(value)) : "";
		err = fn(ctx, name, value);
		p += *p == ',';
	}
	return err;
}

/* ---- processes */

static struct met_process *labels_find(const struct met *m, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < buf_count(&m->processes, struct met_process); i++)
		if (buf_at(&m->processes, struct met_process, i)->tgid == tgid)
			return buf_at(&m->processes, struct met_process, i);
	return NULL;
}

const char *met_labels_of(const struct met *m, uint32_t tgid)
{
	const struct met_process *p = labels_find(m, tgid);

	return p ? p->labels : NULL;
}

/* Which labels a process has as texts. The names are those of DCGM's exporter and the kubelet where these have one. */
static const struct {
	const char *name;
	enum mdl_label_text text;
} label_names[] = {
	{"role", MDL_ROLE},
	{"runtime", MDL_RUNTIME},
	{"pod", MDL_POD_NAME},
	{"namespace", MDL_POD_NAMESPACE},
	{"container", MDL_CONTAINER_NAME},
	{"slurm_job", MDL_SLURM_JOB},
	{"container_id", MDL_CONTAINER},
};

void met_name_jobs(struct met *m, const char *const *rules, unsigned n)
{
	m->rules = rules;
	m->nrules = n;
}

/* The name that a rule gives; NULL: no rule does. */
static const char *ruled(const struct met *m, const char *job, const char *comm)
{
	char glob[MET_LABEL_BYTES];
	const char *is;
	unsigned i;

	for (i = 0; i < m->nrules; i++) {
		is = strchr(m->rules[i], '=');
		snprintf(glob, sizeof(glob), "%.*s", (int)(is - m->rules[i]), m->rules[i]);
		if ((job && !fnmatch(glob, job, 0)) || (comm && !fnmatch(glob, comm, 0)))
			return is + 1;
	}
	return NULL;
}

/* A process that says no name for its job is of its parent's job, else of the job with its own name. */
static void put_job(struct met_labels *l, const struct met *m, const struct mdl_interval *in, uint32_t tgid,
		    const struct tgt_usage *u)
{
	const struct mdl_labels *of = mdl_labels_of(in->session, tgid);
	const char *ended = of && of->comm ? of->comm : mdl_thread_name(in->model, tgid, tgid);
	const char *name = *u->comm ? u->comm : ended;
	const struct met_process *parent = u->parent ? labels_find(m, (uint32_t)u->parent) : NULL;
	const char *given = ruled(m, of ? of->job_name : NULL, name);

	if (given)
		met_label_text(l, "job_name", given);
	else if (of && of->job_name)
		met_label_text(l, "job_name", of->job_name);
	else if (parent && parent->job)
		met_labels_begin(l, parent->job);
	else
		met_label_text(l, "job_name", name ? name : "ended");
}

/*
 * Two jobs that run at the same time can have one name. They are told apart by where their ranks meet, which is in no
 * label, because it is another place each time. A process that meets nobody is of its parent's group.
 */
static char *group_of(const struct met *m, const struct mdl_labels *of, const struct tgt_usage *u, const char *job)
{
	const struct met_process *parent = u->parent ? labels_find(m, (uint32_t)u->parent) : NULL;
	const bool meets = of && *of->texts[MDL_JOB];
	char *group;

	if (!meets && parent && parent->group && !strcmp(parent->job, job))
		return strdup(parent->group);
	return asprintf(&group, "%s %s", job, meets ? of->texts[MDL_JOB] : "") < 0 ? NULL : group;
}

static int name_process(const struct met *m, struct met_process *p, const struct mdl_interval *in,
			const struct tgt_usage *u)
{
	const struct mdl_labels *of = mdl_labels_of(in->session, p->tgid);
	struct met_labels all = {0}, job;
	char number[16];
	unsigned i;

	put_job(&all, m, in, p->tgid, u);
	job = all;
	if (of && of->numbers[MDL_RANK] != MDL_NO_NUMBER) {
		snprintf(number, sizeof(number), "%" PRIu32, of->numbers[MDL_RANK]);
		met_label_text(&all, "rank", number);
	}
	for (i = 0; of && i < sizeof(label_names) / sizeof(label_names[0]); i++)
		met_label_text(&all, label_names[i].name, of->texts[label_names[i].text]);
	free(p->labels);
	free(p->job);
	free(p->group);
	p->labels = strdup(all.text);
	p->job = strdup(job.text);
	p->group = group_of(m, of, u, job.text);
	return p->labels && p->job && p->group ? 0 : -ENOMEM;
}

/* Labels may come a moment after the process; one that has ended keeps those that it had. */
static void labels_look_at(struct met *m, struct met_process *p, const struct mdl_interval *in)
{
	struct tgt_usage u;
	const bool alive = !tgt_peek_usage((pid_t)p->tgid, &u);

	if (alive && p->started && p->started != u.started) { /* another process with this number */
		p->cpu_ns = p->faults = p->gpus = 0;
		p->looped = p->iterates = false;
	}
	if (alive)
		p->started = u.started;
	p->seen = (!alive && p->labels) || !name_process(m, p, in, &u); /* else met_processes_end() removes it */
}

struct met_process *met_process_of(struct met *m, const struct mdl_interval *in, uint32_t tgid)
{
	struct met_process *p = labels_find(m, tgid), new = {.tgid = tgid};

	if (!p && !buf_put(&m->processes, &new, sizeof(new)))
		p = labels_find(m, tgid);
	if (p && !p->seen)
		labels_look_at(m, p, in);
	return p && p->seen ? p : NULL;
}

void met_processes_begin(struct met *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->processes, struct met_process); i++)
		buf_at(&m->processes, struct met_process, i)->seen = false;
}

static void free_process(struct met_process *p)
{
	free(p->labels);
	free(p->job);
	free(p->group);
}

void met_processes_end(struct met *m)
{
	size_t n = buf_count(&m->processes, struct met_process), kept = 0, i;

	for (i = 0; i < n; i++) {
		struct met_process *p = buf_at(&m->processes, struct met_process, i);

		if (p->seen)
			*buf_at(&m->processes, struct met_process, kept++) = *p;
		else
			free_process(p);
	}
	m->processes.len = kept * sizeof(struct met_process);
}

void met_processes_fini(struct met *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->processes, struct met_process); i++)
		free_process(buf_at(&m->processes, struct met_process, i));
	buf_fini(&m->processes);
}
