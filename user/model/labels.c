// SPDX-License-Identifier: Apache-2.0
/* Labels of the processes of a session. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/session.h"

const char *const mdl_label_number_words[MDL_LABEL_NUMBERS] = {
	[MDL_RANK] = "rank",
	[MDL_LOCAL_RANK] = "local_rank",
	[MDL_WORLD_SIZE] = "world_size",
	[MDL_GROUP_RANK] = "group_rank",
};

const char *const mdl_label_text_words[MDL_LABEL_TEXTS] = {
	[MDL_ROLE] = "role",
	[MDL_CONTAINER] = "container",
	[MDL_POD_UID] = "pod_uid",
	[MDL_POD_NAME] = "pod_name",
	[MDL_POD_NAMESPACE] = "pod_namespace",
	[MDL_CONTAINER_NAME] = "container_name",
	[MDL_OWN_HOSTNAME] = "own_hostname",
	[MDL_SLURM_JOB] = "slurm_job",
	[MDL_USER] = "user",
	[MDL_JOB] = "job",
	[MDL_RUNTIME] = "runtime",
};

void mdl_labels_fini(struct mdl_labels *l)
{
	unsigned i;

	for (i = 0; i < MDL_LABEL_TEXTS; i++)
		free(l->texts[i]);
	free(l->hostname);
	free(l->comm);
	free(l->job_name);
	*l = (struct mdl_labels){0};
}

static int labels_copy(struct mdl_labels *to, const struct mdl_labels *from, uint32_t pid, const char *hostname)
{
	bool whole = true;
	unsigned i;

	*to = (struct mdl_labels){.pid = pid, .hostname = strdup(hostname)};
	memcpy(to->numbers, from->numbers, sizeof(to->numbers));
	for (i = 0; i < MDL_LABEL_TEXTS; i++) {
		to->texts[i] = strdup(from->texts[i] ? from->texts[i] : "");
		whole &= to->texts[i] != NULL;
	}
	if (from->comm)
		to->comm = strdup(from->comm);
	if (from->job_name)
		to->job_name = strdup(from->job_name);
	return whole && to->hostname ? 0 : -ENOMEM;
}

int mdl_labels_add(struct mdl_session *s, const struct mdl_labels *from, uint32_t pid, const char *hostname)
{
	struct mdl_labels *of = (struct mdl_labels *)mdl_labels_of(s, pid), *all, new;

	if (!of && s->nlabels >= MDL_LABELS_MAX) {
		s->unlabelled++;
		return 0;
	}
	if (labels_copy(&new, from, pid, hostname)) /* before the array moves, in which `from` may be */
		goto failed;
	if (of) {
		mdl_labels_fini(of);
		*of = new;
		return 0;
	}
	all = realloc(s->labels, (s->nlabels + 1) * sizeof(*all));
	if (!all)
		goto failed;
	s->labels = all;
	all[s->nlabels++] = new;
	return 0;
failed:
	mdl_labels_fini(&new);
	return -ENOMEM;
}

void mdl_labels_keep(struct mdl_session *s, bool (*keep)(void *ctx, uint32_t pid), void *ctx)
{
	size_t i, kept = 0;

	for (i = 0; i < s->nlabels; i++) {
		if (keep(ctx, s->labels[i].pid))
			s->labels[kept++] = s->labels[i];
		else
			mdl_labels_fini(&s->labels[i]);
	}
	s->nlabels = kept;
}

const struct mdl_labels *mdl_labels_of(const struct mdl_session *s, uint32_t pid)
{
	size_t i;

	for (i = 0; i < s->nlabels; i++)
		if (s->labels[i].pid == pid)
			return &s->labels[i];
	return NULL;
}

const char *mdl_runtime_of(const struct mdl_session *s, uint32_t pid)
{
	const struct mdl_labels *l = mdl_labels_of(s, pid);

	if (!l && s->nlabels) /* a process beyond MDL_LABELS_MAX counts as one of the first runtime */
		l = &s->labels[0];
	return l ? l->texts[MDL_RUNTIME] : "";
}

unsigned mdl_runtimes(const struct mdl_session *s, const char *runtimes[MDL_RUNTIMES_MAX])
{
	const char *runtime;
	unsigned n = 0, k;
	size_t i;

	for (i = 0; i < s->nlabels; i++) {
		runtime = s->labels[i].texts[MDL_RUNTIME];
		for (k = 0; k < n && strcmp(runtimes[k], runtime); k++)
			;
		if (k == n && n < MDL_RUNTIMES_MAX)
			runtimes[n++] = runtime;
	}
	return n;
}
