// SPDX-License-Identifier: Apache-2.0
/* Labels of each process that a session watches. */
#include "target/labels.h"
#include "targets/follow.h"

#define TEXT(name) offsetof(struct tgt_labels, name)

/* Places of the texts in struct tgt_labels. */
static const size_t texts[MDL_LABEL_TEXTS] = {
	[MDL_ROLE] = TEXT(role),
	[MDL_CONTAINER] = TEXT(container),
	[MDL_POD_UID] = TEXT(pod_uid),
	[MDL_POD_NAME] = TEXT(pod_name),
	[MDL_POD_NAMESPACE] = TEXT(pod_namespace),
	[MDL_CONTAINER_NAME] = TEXT(container_name),
	[MDL_OWN_HOSTNAME] = TEXT(own_hostname),
	[MDL_SLURM_JOB] = TEXT(slurm_job),
	[MDL_USER] = TEXT(user),
	[MDL_JOB] = TEXT(job),
};

static uint32_t labels_number(int32_t n)
{
	return n < 0 ? MDL_NO_NUMBER : (uint32_t)n;
}

static bool is_followed(void *session, uint32_t pid)
{
	return follow_has(session, pid);
}

/*
 * If only intervals are shown, for months, labels of processes that have ended make room for others. Recordings of the
 * last seconds have them until then.
 */
static int labels_add(struct session *ses, const struct mdl_labels *from, uint32_t tgid)
{
	struct mdl_session *s = &ses->about;
	int err;

	pthread_mutex_lock(&ses->lock);
	if (ses->o->only_intervals && s->nlabels == MDL_LABELS_MAX)
		mdl_labels_keep(s, is_followed, ses);
	err = mdl_labels_add(s, from, tgid, s->hostname);
	pthread_mutex_unlock(&ses->lock);
	return err;
}

int ses_labels_note(struct session *ses, const struct tgt *t)
{
	struct mdl_labels to = {0};
	struct tgt_labels l;
	unsigned i;

	tgt_labels(t, &l);
	to.numbers[MDL_RANK] = labels_number(l.rank);
	to.numbers[MDL_LOCAL_RANK] = labels_number(l.local_rank);
	to.numbers[MDL_WORLD_SIZE] = labels_number(l.world_size);
	to.numbers[MDL_GROUP_RANK] = labels_number(l.group_rank);
	for (i = 0; i < MDL_LABEL_TEXTS; i++)
		to.texts[i] = (char *)&l + texts[i];
	to.texts[MDL_RUNTIME] = ses_build_of(ses, (uint32_t)tgt_pid(t))->title;
	to.comm = (char *)(uintptr_t)tgt_comm(t);
	to.job_name = *l.job_name ? l.job_name : NULL;
	return labels_add(ses, &to, (uint32_t)tgt_pid(t));
}

/* A forked child has its parent's environment and name. A process without labels is taken for one of the first build.
 */
int ses_labels_gone(struct session *ses, uint32_t tgid, uint32_t parent)
{
	const struct mdl_labels *of = parent ? mdl_labels_of(&ses->about, parent) : NULL;
	const struct ses_build *b = ses_build_of(ses, tgid);
	struct mdl_labels to = {0};
	char none[] = "";
	unsigned i;

	if (of)
		return labels_add(ses, of, tgid);
	if (b == ses->first)
		return 0;
	for (i = 0; i < MDL_LABEL_NUMBERS; i++)
		to.numbers[i] = MDL_NO_NUMBER;
	for (i = 0; i < MDL_LABEL_TEXTS; i++)
		to.texts[i] = none;
	to.texts[MDL_RUNTIME] = b->title;
	return labels_add(ses, &to, tgid);
}
