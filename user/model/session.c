// SPDX-License-Identifier: Apache-2.0
/* The description of a session. */
#include "model/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fini_lib(struct mdl_lib *l)
{
	free(l->path);
	free(l->build_id);
	free(l->runtime);
}

static void fini_probe(struct mdl_probe *p)
{
	free(p->name);
	free(p->group);
	free(p->symbol);
	free(p->status);
	free(p->reason);
	free(p->runtime);
}

static void fini_note(struct mdl_note *n)
{
	free(n->name);
	free(n->text);
}

int mdl_sources_copy(struct mdl_session *to, const struct mdl_session *from)
{
	size_t i;

	to->nsources = 0;
	to->sources = calloc(from->nsources + 1, sizeof(*to->sources));
	for (i = 0; to->sources && i < from->nsources; i++) {
		to->sources[i] = from->sources[i];
		to->sources[i].name = strdup(from->sources[i].name);
		to->nsources++;
		if (!to->sources[i].name)
			return -ENOMEM;
	}
	return to->sources ? 0 : -ENOMEM;
}

void mdl_sources_fini(struct mdl_session *s)
{
	size_t i;

	for (i = 0; i < s->nsources; i++)
		free(s->sources[i].name);
	free(s->sources);
	s->sources = NULL;
	s->nsources = 0;
}

void mdl_session_fini(struct mdl_session *s)
{
	size_t i;

	for (i = 0; i < s->nlibs; i++)
		fini_lib(&s->libs[i]);
	for (i = 0; i < s->nprobes; i++)
		fini_probe(&s->probes[i]);
	for (i = 0; i < s->ndevices; i++)
		free(s->devices[i].name);
	for (i = 0; i < s->nfallbacks; i++)
		free(s->fallbacks[i].name);
	for (i = 0; i < s->nnotes; i++)
		fini_note(&s->notes[i]);
	for (i = 0; i < s->nprocesses; i++) {
		free(s->processes[i].role);
		free(s->processes[i].hostname);
	}
	free(s->processes);
	for (i = 0; i < s->nlabels; i++)
		mdl_labels_fini(&s->labels[i]);
	free(s->labels);
	free(s->job_backend);
	free(s->boot_id);
	free(s->host_clock);
	free(s->cpu_model);
	free(s->kernel);
	free(s->python);
	for (i = 0; i < s->ncounters; i++)
		free(s->counters[i].name);
	for (i = 0; i < MXBPF_CLASS_MAX; i++)
		free(s->class_title[i]);
	free(s->libs);
	free(s->probes);
	free(s->devices);
	free(s->fallbacks);
	free(s->gaps);
	mdl_sources_fini(s);
	free(s->notes);
	free(s->counters);
	free(s->mem_title);
	free(s->trace_form);
	free(s->profiler);
	free(s->agent_route);
	free(s->mxbpf_version);
	free(s->given_comm);
	free(s->given_cmdline);
	free(s->comm);
	free(s->cmdline);
	free(s->hostname);
	*s = (struct mdl_session){0};
}

struct mdl_target mdl_target_of(const struct mdl_session *s)
{
	if (!s->given_pid)
		return (struct mdl_target){s->pid, s->comm, s->cmdline};
	return (struct mdl_target){s->given_pid, s->given_comm ? s->given_comm : "",
				   s->given_cmdline ? s->given_cmdline : ""};
}

const struct mdl_process *mdl_process_of(const struct mdl_session *s, uint32_t pid)
{
	size_t i = s->nprocesses;

	while (i-- > 0) /* from the end, because a pid can be reused */
		if (s->processes[i].pid == pid)
			return &s->processes[i];
	return NULL;
}

bool mdl_shows(const struct mdl_session *s, uint32_t pid)
{
	const struct mdl_process *p = s->shown_role ? mdl_process_of(s, pid) : NULL;

	if (s->shown_runtime && strcmp(mdl_runtime_of(s, pid), s->shown_runtime))
		return false;

	return !s->shown_role || !strcmp(p ? p->role : "", s->shown_role);
}

const char *mdl_device_name(const struct mdl_session *s, uint32_t device, char buf[48])
{
	unsigned type = MXBPF_DEVICE_TYPE(device), id = MXBPF_DEVICE_ID(device);
	size_t i;

	if (!type) {
		snprintf(buf, 48, "-");
		return buf;
	}
	for (i = 0; i < s->ndevices && s->devices[i].type != type; i++)
		;
	if (i == s->ndevices)
		snprintf(buf, 48, "dev%u/%u", type, id);
	else if (s->devices[i].numbered)
		snprintf(buf, 48, "%.32s/%u", s->devices[i].name, id);
	else
		snprintf(buf, 48, "%.32s/", s->devices[i].name);
	return buf;
}
