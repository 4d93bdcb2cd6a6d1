// SPDX-License-Identifier: Apache-2.0
/* `mxbpf record --gpu --no-bpf`: runs a command and records its GPU without probes. */
#include <stdio.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/run.h"
#include "gpu_only/gpu_only.h"

static void on_tell(void *ctx, enum ses_level level, const char *text)
{
	cmd_warn("%s", text);
}

/* Reports what was recorded. */
static int say_result(const struct run *r, const struct mdl_session *about)
{
	char n[3][32];

	if (!r->o->quiet)
		fprintf(stderr, "wrote %s: %s of %s records of the GPU, %s dropped; no operators\n", r->so.recording,
			fmt_count(about->loss.stored, n[0]), fmt_count(about->loss.attempted, n[1]),
			fmt_count(about->loss.dropped, n[2]));
	return about->loss.attempted ? CMD_OK : CMD_NOTHING_SEEN;
}

int cmd_record_without_bpf(const struct cmd_opts *o, const char *recording)
{
	const struct ses_ui ui = {.tell = on_tell, .wake_fd = -1};
	struct run r = {.o = o, .so = o->ses, .signals = -1};
	struct gpu_only *g = NULL;
	int code, ended = -1;
	struct err e = {0};

	r.so.recording = recording;
	if (cmd_check_outputs(o, recording, &e) || gpu_only_open(&r.so, &ui, &g, &e)) {
		code = cmd_fail(&e);
		goto out;
	}
	cmd_limit(o);
	r.signals = signals_open(true, &e);
	ended = e.code ? -1 : gpu_only_run(g, r.signals, &e);
	if (e.code) {
		code = cmd_fail(&e);
		goto out;
	}
	signals_results(&r, SIGNALS_STOPPING);
	code = gpu_only_write(g, &e) ? cmd_fail(&e) : say_result(&r, gpu_only_about(g));
out:
	gpu_only_free(g);
	if (r.signals >= 0)
		close(r.signals);
	return ended > 0 ? ended : code;
}
