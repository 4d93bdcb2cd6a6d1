/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `mxbpf serve` share. */
#ifndef CMD_SERVE_SERVE_H
#define CMD_SERVE_SERVE_H

#include <limits.h>
#include <pthread.h>

#include "cmd/run.h"
#include "cmd/serve/stream.h"
#include "metrics/metrics.h"
#include "nvml/nvml.h"
#include "push/push.h"
#include "serve/serve.h"
#include "trigger/trigger.h"

#define SERVE_DUMPS 4 /* that are under way at most, with room to spare */

#define SERVE_UNFIT_MAX 64 /* processes that could not be watched are remembered */

/* Why the last seconds are written. */
struct serve_dump {
	char word[32], why[TRG_WHY_BYTES]; /* word: for the name of the file; why: untrusted */
	char pids[1024];		   /* of a hang: "12,13", whose threads are shown; "": none */
	uint64_t ns;			   /* time to write; UINT64_MAX: all that the recording has */
	struct met_recorded slow;	   /* the iteration for which it is written; series 0: none */
	bool asked;			   /* a client waits for the name of the file */
};

enum serve_asked { SERVE_IDLE, SERVE_RECORDING, SERVE_WRITTEN };

struct serve {
	struct run run;
	struct met *metrics;
	struct nvml *nvml;     /* NULL: no memory */
	struct nvml_list gpus; /* of the last interval */
	int wake;	       /* epoll of what follows */
	int timer;	       /* timerfd: each few seconds */
	bool watchdog;	       /* the service manager wants to be told then */
	int due, written; /* timerfd: the end of a recording that was asked for; eventfd: it is written; -1: none */
	struct srv *http; /* NULL: none */
	struct stream *stream;	   /* NULL: none */
	char *listen, *token_file; /* owned: the server borrows them, and SIGHUP replaces the options */
	/* Where metrics and profiles are sent; NULL: nowhere. The URLs are owned: they tell whether options changed. */
	struct push *otlp, *profiles;
	char *otlp_url, *profiles_url;
	struct buf resource;			 /* struct met_attribute with owned texts */
	bool reload, ends;			 /* a signal asked for it */
	bool anew;				 /* a new session has to begin, with the same options */
	bool started;				 /* the window has begun */
	struct ses_unfit unfit[SERVE_UNFIT_MAX]; /* a ring of the last ones */
	unsigned nunfit;
	uint64_t nintervals;
	/* While an interval is shown, its model. */
	const struct mdl_session *about;
	struct mdl *model;
	/* POST /trace. */
	enum serve_asked asked;
	const struct srv_request *asked_for; /* compared, never read */
	uint64_t asked_ns;
	char file[PATH_MAX]; /* set by a thread of the session before `written`; "": it failed */
	struct trg *on[CMD_ON_MAX];
	struct buf pids, text; /* pids: pid_t of the processes that are watched */
	bool detached;	       /* nothing is watched any more */
	struct err failed;     /* why the text file could not be written the last time */
	/* A thread of the session counts those that were written. */
	struct serve_dump dumps[SERVE_DUMPS];
	unsigned ndumps, nwritten;
	pthread_mutex_t lock; /* protects recordings of slow iterations that are written, and no exemplars yet */
	struct met_recorded slow[SERVE_DUMPS];
	unsigned nslow;
};

/*
 * serve.c: serve_write() gets a recording in a thread of the session. serve_write_last: the last ns, of what is kept.
 * serve_record: the next ns; false: that is done already.
 */
void serve_write_last(struct serve *s, const struct serve_dump *d, uint64_t ns);
bool serve_record(struct serve *s, const struct serve_dump *d, uint64_t ns);

/*
 * tables.c, while an interval is shown. serve_tables: 0, -ENOMEM or -EIO. serve_stream: hands a line to the stream, if
 * there is one.
 */
int serve_tables(const struct serve *s, enum cmd_format format, bool one_line, struct buf *to);
void serve_stream(struct serve *s);

/* files.c: writes the last seconds of a recording. Called in a thread of the session. Returns an exit code. */
int serve_write(struct serve *s, int fd, const struct serve_dump *d);

/*
 * push.c. serve_push_open: opens what the options and the environment name; what was open stays if its URL is the same.
 * 0, or -errno with e set. serve_push: sends an interval, and returns at once.
 */
int serve_push_open(struct serve *s, const struct cmd_opts *o, struct err *e);
void serve_push(struct serve *s, const struct mdl_interval *in);
void serve_push_close(struct serve *s);

/* http.c. serve_listen: 0, or -errno with e set. serve_answer: answers requests that can be answered now. */
int serve_listen(struct serve *s, const struct cmd_opts *o, struct err *e);
void serve_answer(struct serve *s);
void serve_close(struct serve *s);

#endif
