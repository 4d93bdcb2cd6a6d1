// SPDX-License-Identifier: Apache-2.0
/* `mxbpf check`: what the kernel supports, and where each probe would lie or why it cannot be attached. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/script.h"
#include "attach/attach.h"
#include "base/fmt.h"
#include "cmd/cmd.h"
#include "plan/plan.h"
#include "target/target.h"

#define LINE_BYTES 4600 /* a path and what is said of it */

/* Prints a line. It is escaped, because it may have names and paths of the target. */
__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char text[2 * LINE_BYTES], safe[LINE_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fmt_safe(safe, sizeof(safe), text, strlen(text));
	printf("%s\n", safe);
}

static int check_kernel(void)
{
	struct att_feature rows[16];
	unsigned n = att_features(rows, 16), i;
	int code = CMD_OK;

	say("kernel");
	for (i = 0; i < n; i++) {
		say("  %-4s %-24s %s",
		    rows[i].ok	       ? "ok"
		    : rows[i].required ? "NO"
				       : "no",
		    rows[i].name, rows[i].detail);
		if (!rows[i].ok && rows[i].required)
			code = CMD_PRIVILEGE;
	}
	return code;
}

static int check_probe(const struct plan_probe *p)
{
	static const char *const costs[] = {"emulated, " CMD_COST_TRAP " a hit",
					    "single-stepped, " CMD_COST_STEP " a hit", ""};
	bool replaced = p->spare || p->stand_in, optional = replaced || p->row->optional;
	char why[PLAN_WHY_BYTES];

	if (replaced || p->reason[0]) {
		say("  %-4s %-26s %s", replaced ? "-" : optional ? "no" : "NO", p->row->name, plan_why(p, why));
		return optional ? CMD_OK : CMD_NO_TARGET;
	}
	if (p->row->each_lib)
		say("  ok   %-26s in every such library, whenever it is loaded", p->row->name);
	else if (p->row->family.prefix || p->row->family.list || p->row->family.calls)
		say("  ok   %-26s %u functions, %u without a probe at their end", p->row->name, p->nfuncs, p->nendless);
	else
		say("  ok   %-26s +0x%llx %s (%s)%s%s", p->row->name, (unsigned long long)p->off, p->entry.text,
		    costs[p->entry.cost], p->hidden ? "; found without a symbol" : "",
		    p->calibrated ? "; offsets read from its code" : "");
	return CMD_OK;
}

/* How many functions of operators --ops matches. */
static int check_ops(const struct plan *p)
{
	unsigned left, n = plan_ops_matched(p, &left);
	char near[300];

	if (!n && !left)
		say("  --   %-26s names are known only at run time", "--ops");
	else if (!n)
		say("  NO   %-26s matches none of %u operator functions; nearest: %s", "--ops", left,
		    plan_near_text(&p->near, near));
	else
		say("  ok   %-26s matches %u of %u operator functions", "--ops", n, n + left);
	return n || !left ? CMD_OK : CMD_NO_TARGET;
}

static void check_detail(const char *name, const struct err *no, const char *what)
{
	say("  %-4s %-20s %s", no->code ? "no" : "ok", name, no->code ? no->why : what);
}

static void check_details(const struct plan *plan)
{
	char text[128];

	if (!plan->adp->args.types)
		return;
	snprintf(text, sizeof(text), "key set of a tensor at +0x%x; arguments of %u functions are not understood",
		 plan->tensor_keys_off, plan->nargless);
	check_detail("shapes", &plan->no_args, text);
	check_detail("forward-backward", &plan->no_seq, "joined by sequence numbers");
}

/* This cannot tell whether a thread will reach a point at which it can be stopped. */
static void check_agent(const struct plan *plan, struct tgt *t)
{
	struct err no = {0};

	if (!plan->adp->agent.add_callback)
		return;
	agt_usable(plan, t, true, &no);
	check_detail("agent", &no, "can be loaded");
	if (no.code)
		return;
	agt_script_usable(t, &no);
	if (no.code)
		say("  --   %-20s by ptrace only: %s", "route of the agent", no.why);
	else
		say("  ok   %-20s by ptrace, else by a script that Python executes (PEP 768)", "route of the agent");
}

static int check_target(const struct cmd_opts *o)
{
	const struct att_backend *backend = att_pick(NULL, NULL);
	const struct plan_opts po = {.groups = ~0u,
				     .ops = o->ses.ops,
				     .runtime = o->ses.runtime,
				     .lenient = true,
				     .probes_max = backend ? backend->probes_max : 0};
	struct plan plan = {0};
	struct err e = {0};
	struct tgt *t = NULL;
	int code = CMD_OK, one;
	size_t i;

	if (tgt_open(o->ses.choice.pids[0], &t, &e) || plan_make(t, &po, &plan, &e)) {
		code = cmd_fail(&e);
		goto out;
	}
	say("process %d (%s)", tgt_pid(t), tgt_comm(t));
	say("  ok   %s %s in %s%s", plan.adp->title, plan.version ? plan.version : "of an unknown build",
	    plan.lib->path, plan.lib->deleted ? " (deleted on disk; the mapped file is used)" : "");
	say("probes");
	for (i = 0; i < plan.nprobes; i++) {
		one = check_probe(&plan.probes[i]);
		code = code ? code : one;
	}
	check_details(&plan);
	check_agent(&plan, t);
	if (o->ses.ops) {
		one = check_ops(&plan);
		code = code ? code : one;
	}
out:
	plan_fini(&plan);
	tgt_close(t);
	return code;
}

int cmd_check(const struct cmd_opts *o)
{
	int kernel = check_kernel();
	int target = o->ses.choice.npids ? check_target(o) : CMD_OK;

	return kernel ? kernel : target;
}
