// SPDX-License-Identifier: Apache-2.0
/* Tests two sessions in one process at a time, each on its own target. The targets print the right counts. */
#include <cjson/cJSON.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>

#include "attach/attach.h"
#include "session/session.h"
#include "unit.h"

#define SESSIONS 2

static char toy[PATH_MAX];
static sem_t attached;

static struct job {
	const char *rounds;
	pid_t pid;
	FILE *says;
	struct ses_opts opts;
	struct session *ses;
	struct err why;
	bool ok;
} jobs[SESSIONS] = {{.rounds = "300"}, {.rounds = "7"}};

static bool start_toy(struct job *s)
{
	char line[64];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return false;
	s->pid = fork();
	if (!s->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		execl(toy, toy, s->rounds, "2", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	s->says = fdopen(ends[0], "r");
	return s->says && fgets(line, sizeof(line), s->says) && !strncmp(line, "ready ", 6);
}

/* Profiles from the first probe to the end of the target. */
static void *watch(void *arg)
{
	const struct ses_ui nobody = {.wake_fd = -1};
	struct job *s = arg;
	bool started;

	s->opts = (struct ses_opts){.choice = {.pids = {s->pid}, .npids = 1}, .probes = PROBE_OP | PROBE_API};
	started = !ses_open(&s->opts, &nobody, &s->ses, &s->why) && !ses_prepare(s->ses, &s->why) &&
		  !ses_start(s->ses, &s->why);
	sem_post(&attached);
	if (started) {
		ses_wait(s->ses);
		s->ok = !ses_stop(s->ses, &s->why);
	}
	return NULL;
}

/* Returns the line of JSON from the target, which comes after lines about failed calls. */
static cJSON *what_it_did(struct job *s)
{
	char line[4096];

	while (fgets(line, sizeof(line), s->says))
		if (line[0] == '{')
			return cJSON_Parse(line);
	return NULL;
}

static void compare(const struct job *s, const cJSON *did, enum mxbpf_class cls)
{
	const cJSON *table = cJSON_GetObjectItem(did, ses_about(s->ses)->class_title[cls]), *count;
	size_t n, i, len;
	const struct mdl_row *const *rows = mdl_rows(ses_model(s->ses), cls, &n);
	char text[256];

	CHECK(n > 0 && (int)n == cJSON_GetArraySize(table));
	for (i = 0; i < n; i++) {
		const char *name = mdl_name(ses_model(s->ses), rows[i]->name_id, &len);

		snprintf(text, sizeof(text), "%.*s", (int)len, name);
		count = cJSON_GetObjectItem(table, text);
		if (!count || (uint64_t)count->valuedouble != rows[i]->count || rows[i]->tgid != (uint32_t)s->pid)
			printf("# %s: %llu calls in process %u\n", text, (unsigned long long)rows[i]->count,
			       rows[i]->tgid);
		CHECK(count && (uint64_t)count->valuedouble == rows[i]->count && rows[i]->tgid == (uint32_t)s->pid);
	}
}

static void check(struct job *s, const cJSON *did)
{
	const struct mxbpf_loss *loss = s->ses ? &ses_about(s->ses)->loss : NULL;

	CHECK(s->ok && did);
	if (s->why.why[0])
		printf("# %s\n", s->why.why);
	if (!s->ok || !did)
		return;
	CHECK(loss->attempted > 0 && loss->attempted == loss->stored);
	compare(s, did, MXBPF_CLASS_OPERATOR);
	compare(s, did, MXBPF_CLASS_API);
}

static void watch_both(void)
{
	pthread_t threads[SESSIONS];
	cJSON *did[SESSIONS];
	int i;

	for (i = 0; i < SESSIONS; i++)
		if (!start_toy(&jobs[i]) || pthread_create(&threads[i], NULL, watch, &jobs[i]))
			abort();
	for (i = 0; i < SESSIONS; i++)
		sem_wait(&attached);
	for (i = 0; i < SESSIONS; i++)
		kill(jobs[i].pid, SIGUSR1);
	for (i = 0; i < SESSIONS; i++) {
		did[i] = what_it_did(&jobs[i]);
		waitpid(jobs[i].pid, NULL, 0);
		pthread_join(threads[i], NULL);
		check(&jobs[i], did[i]);
		cJSON_Delete(did[i]);
		ses_free(jobs[i].ses);
		fclose(jobs[i].says);
	}
}

int main(int argc, char **argv)
{
	const char *lacks = "";
	struct err e = {0};

	snprintf(toy, sizeof(toy), "%s/../toy/toy", dirname(argv[0]));
	if (!att_pick(NULL, &e))
		lacks = e.why;
	else if (access(toy, X_OK))
		lacks = "there is no toy beside it";
	if (*lacks) {
		printf("ok 1 - two sessions in one process count their own targets # SKIP %s\n1..1\n", lacks);
		return 0;
	}
	sem_init(&attached, 0, 0);
	TEST("two sessions at the same time in one process count each exactly the calls of their own target")
	{
		watch_both();
	}
	UNIT_MAIN_END;
}
