// SPDX-License-Identifier: Apache-2.0
/* Getters of a session. */
#include "session/priv.h"
#include "targets/targets.h"

const struct mdl_session *ses_about(const struct session *ses)
{
	return &ses->about;
}

struct mdl *ses_model(const struct session *ses)
{
	if (ses->model && mdl_settle(ses->model))
		ses_warn(ses, "out of memory: tables lack calls");
	return ses->model;
}

struct tgt *ses_target(const struct session *ses)
{
	return ses->targets[0].tgt;
}

const struct plan *ses_plan(const struct session *ses)
{
	return &ses->targets[0].plan;
}

int ses_events_fd(const struct session *ses)
{
	return rec_writer_fd(ses->writer);
}

void ses_loss(const struct session *ses, struct mxbpf_loss *loss)
{
	src_loss_all(ses->hub, loss);
}

int ses_failed(const struct session *ses)
{
	return ses->interval.failed;
}

void ses_forward(const struct session *ses, const struct signalfd_siginfo *sig)
{
	if (ses->launch.pid)
		launch_forward(&ses->launch, sig);
}

bool ses_launched(const struct session *ses)
{
	return ses->launch.pid;
}

int ses_wait_command(struct session *ses, int signals)
{
	if (!ses->launch.pid || ses->launch.go >= 0 || ses->launch.failed >= 0)
		return -1;
	ses_follow_free(ses); /* also resumes the command */
	return launch_wait(&ses->launch, signals);
}

void ses_keep_lasts(struct session *ses)
{
	ses->lasts.wanted = true;
}

void ses_opens(struct session *ses, uint64_t at_ns, struct buf *opens)
{
	struct ses_look look;

	ses_look(ses, &look);
	pthread_mutex_lock(&ses->lock);
	ses_open_spans(ses, &look, at_ns, opens);
	pthread_mutex_unlock(&ses->lock);
}

void ses_learn(struct session *ses, void *recs, size_t bytes)
{
	pthread_mutex_lock(&ses->lock);
	ses_learn_locked(ses, recs, bytes);
	pthread_mutex_unlock(&ses->lock);
}

const struct mxbpf_span *ses_last(const struct session *ses, pid_t tid)
{
	const uint64_t *at = hash_get(&ses->lasts.of, (uint64_t)tid, 0);

	return at ? buf_at(&ses->lasts.spans, struct mxbpf_span, *at) : NULL;
}
