// SPDX-License-Identifier: Apache-2.0
/* Fills struct mdl_session, the session's description for every output. */
#include "session/priv.h"
#include "targets/targets.h"

#include <cpuid.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fmt.h"
#include "feature/activity/activity.h"
#include "python/python.h"

static char *dup_or_empty(const char *s)
{
	return strdup(s ? s : "");
}

/* Adds the library of a build. */
static int describe_lib(const struct ses_build *b, struct mdl_session *s)
{
	const struct tgt_lib *lib = b->of->plan.lib;
	char id[2 * ELF_BUILD_ID_MAX + 1];
	struct mdl_lib *libs = realloc(s->libs, (s->nlibs + 1) * sizeof(*libs)), *new;

	if (!libs)
		return -ENOMEM;
	s->libs = libs;
	new = &libs[s->nlibs++];
	fmt_hex(lib->build_id, lib->build_id_bytes, id);
	*new = (struct mdl_lib){strdup(lib->path), strdup(id), strdup(b->title)};
	return new->path &&new->build_id &&new->runtime ? 0 : -ENOMEM;
}

static int describe_probes(const struct ses_build *b, struct mdl_session *s)
{
	const struct plan *plan = &b->of->plan;
	struct mdl_probe *probes = realloc(s->probes, (s->nprobes + plan->nprobes) * sizeof(*probes)), *d;
	char why[PLAN_WHY_BYTES];
	size_t i;

	if (!probes)
		return -ENOMEM;
	s->probes = probes;
	for (i = 0; i < plan->nprobes; i++) {
		const struct plan_probe *p = &plan->probes[i];

		d = &s->probes[s->nprobes++];
		*d = (struct mdl_probe){
			.name = strdup(p->row->name),
			.group = strdup(plan_group_name(p->row->group)),
			.symbol = dup_or_empty(p->symbol),
			.status = strdup(!p->wanted || p->stand_in ? "off"
					 : p->reason[0]		   ? "refused"
								   : "attached"),
			.reason = strdup(plan_why(p, why)),
			.runtime = strdup(b->number ? b->title : ""),
		};
		if (!d->name || !d->group || !d->symbol || !d->status || !d->reason || !d->runtime)
			return -ENOMEM;
	}
	return 0;
}

/* Types of devices of another runtime may have other names: "gpu or cuda". */
static int add_device(struct mdl_session *s, const struct adp_device *of)
{
	struct mdl_device *all, *d;
	char *both;
	size_t i;

	for (i = 0; i < s->ndevices && s->devices[i].type != of->type; i++)
		;
	if (i < s->ndevices) {
		d = &s->devices[i];
		if (!strcmp(d->name, of->name))
			return 0;
		if (asprintf(&both, "%s or %s", d->name, of->name) < 0)
			return -ENOMEM;
		free(d->name);
		d->name = both;
		return 0;
	}
	all = realloc(s->devices, (s->ndevices + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	s->devices = all;
	all[s->ndevices] = (struct mdl_device){of->type, of->numbered, strdup(of->name)};
	return all[s->ndevices++].name ? 0 : -ENOMEM;
}

static int describe_devices(const struct ses_build *b, struct mdl_session *s)
{
	unsigned i;

	for (i = 0; i < b->of->plan.adp->ndevices; i++)
		if (add_device(s, &b->of->plan.adp->devices[i]))
			return -ENOMEM;
	return 0;
}

int ses_add_note(struct mdl_session *s, const char *name, const char *fmt, ...)
{
	struct mdl_note *notes = realloc(s->notes, (s->nnotes + 1) * sizeof(*notes)), *n;
	va_list ap;

	if (!notes)
		return -ENOMEM;
	s->notes = notes;
	n = &notes[s->nnotes];
	n->name = strdup(name);
	va_start(ap, fmt);
	if (vasprintf(&n->text, fmt, ap) < 0)
		n->text = NULL;
	va_end(ap);
	s->nnotes++;
	return n->name && n->text ? 0 : -ENOMEM;
}

/* What the agent does not see of memory. */
static int describe_agent_memory(struct mdl_session *s, const struct plan_agent_memory *m)
{
	if (!m->works && ses_add_note(s, "memory", "probes see memory, because the agent cannot: %s", m->why.why))
		return -ENOMEM;
	return m->unhooked.code
		       ? ses_add_note(s, "memory", "probes see what an allocator reports, because the agent cannot: %s",
				      m->unhooked.why)
		       : 0;
}

static int describe_notes(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	unsigned left, funcs = plan_ops_matched(&of->plan, &left);
	char n[2][32];
	int err = 0;

	s->api_probed = plan_api_probed(&of->plan, &s->api_left);
	if (of->plan.beside)
		err = ses_add_note(s, "runtime", "%s is loaded, too, but not profiled; use --runtime %s",
				   of->plan.beside->title, of->plan.beside->name);
	if (!err && s->api_left)
		err = ses_add_note(s, "api",
				   "%u functions of the C API that work or wait are probed; %u others are not, and "
				   "their calls are not included; --api all probes them",
				   s->api_probed, s->api_left);
	if (!err && !of->plan.version && (ses->want.groups & plan_groups_of(of->plan.adp, true) & PROBE_KV))
		err = ses_add_note(
			s, "kvstore",
			"keys and bytes are not read, because the layout of arrays in this build is not known");
	if (!err && ses->o->ops && left)
		err = ses_add_note(s, "ops",
				   "%s: %s of %s operator functions are probed; self times include the time of the "
				   "others",
				   ses->o->ops, fmt_count(funcs, n[0]), fmt_count(funcs + left, n[1]));
	else if (!err && ses->o->ops)
		err = ses_add_note(s, "ops", "%s: operators with other names are not included", ses->o->ops);
	if (!err)
		err = ses_features_describe(ses, of, s);
	if (!err && ses->o->agent)
		err = ses_add_note(
			s, "agent",
			"the agent records operators%s, with the names that a profiler of %s shows; their page faults "
			"are not known",
			of->plan.agent_memory.nhooks && of->plan.opts.groups & PROBE_MEM ? " and memory" : "",
			of->plan.adp->title);
	if (!err && ses->o->agent && of->plan.opts.groups & PROBE_MEM)
		err = describe_agent_memory(s, &of->plan.agent_memory);
	return err;
}

/* Classes of user annotations. */
static int describe_marks(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	unsigned cls;

	for (cls = MXBPF_CLASS_TASK; cls <= MXBPF_CLASS_EVENT; cls++) {
		free(s->class_title[cls]);
		s->class_title[cls] = dup_or_empty(of->plan.adp->class_title[cls]);
		if (!s->class_title[cls])
			return -ENOMEM;
	}
	return 0;
}

/* A table has a title if one of its probes is attached, or if the agent records its calls. */
static int describe_tables(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	const struct adp *a = of->plan.adp;
	size_t i;

	for (i = 0; i < a->nprobes; i++) { /* the rows of all runtimes wait for their libraries: late.c */
		const struct plan_probe *p = &of->plan.probes[i];
		const struct mxbpf_row *row = &p->row->row;
		char **title = row->action == MXBPF_ACT_OPEN	? &s->class_title[row->cls]
			       : row->action == MXBPF_ACT_ALLOC ? &s->mem_title
								: NULL;

		if (row->action == MXBPF_ACT_MARK_START && p->wanted && !p->reason[0] && describe_marks(ses, of, s))
			return -ENOMEM;
		const bool by_agent = (of->plan.opts.agent && p->row->by_agent) ||
				      (of->plan.agent_memory.nhooks && p->row->by_agent_memory);
		bool seen = by_agent ? of->plan.opts.groups & p->row->group : p->wanted && !p->reason[0];

		if (!title || *title || !seen)
			continue;
		*title = dup_or_empty(row->action == MXBPF_ACT_OPEN ? a->class_title[row->cls] : a->mem_title);
		if (!*title)
			return -ENOMEM;
	}
	return 0;
}

static void describe_rank(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	const struct adp *a = of->plan.adp;
	const struct mdl_process *p = s->nprocesses ? &s->processes[0] : NULL;
	int32_t rank = a->rank_env ? tgt_env_number(of->tgt, a->rank_env) : -1;
	int32_t ranks = a->rank_env ? tgt_env_number(of->tgt, a->world_size_env) : -1;

	if (p && !p->by_order && !strcmp(p->role, a->roles[0].role)) { /* only workers have a rank */
		rank = (int32_t)p->rank;
		ranks = (int32_t)p->of;
	}
	if (rank < 0 || rank >= ranks)
		return;
	s->rank = (uint32_t)rank;
	s->world_size = (uint32_t)ranks;
}

/*
 * In a virtual machine a page fault takes longer if the machine had given the page back to its host: 5.1 us instead of
 * 1.5 us, measured on 18 GiB. The guest accounts the time of the host as its own.
 */
#define HOST_TOO 4

static bool is_virtual(void)
{
	unsigned a, b, c = 0, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c >> 31; /* bit "hypervisor" */
}

enum { FAULT_PAGES = 32, FAULT_TRIES = 15 };

/* How long a page fault took, in ns: the mean of FAULT_PAGES new pages. 0: unknown. */
static uint64_t fault_once_ns(size_t page)
{
	char *p = mmap(NULL, FAULT_PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t began, ns;
	size_t i;

	if (p == MAP_FAILED)
		return 0;
	madvise(p, FAULT_PAGES * page, MADV_NOHUGEPAGE);
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (i = 0; i < FAULT_PAGES; i++)
		*(volatile char *)(p + i * page) = 1;
	ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	munmap(p, FAULT_PAGES * page);
	return ns / FAULT_PAGES;
}

static int by_ns(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Measures how long a page fault without I/O takes, in mxbpf itself because the target cannot be asked. A virtual
 * machine that loses its CPU meanwhile counts that time too, so the median of several tries is taken.
 */
static uint32_t fault_own_ns(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t ns[FAULT_TRIES];

	for (size_t i = 0; i < FAULT_TRIES; i++)
		ns[i] = fault_once_ns(page);
	qsort(ns, FAULT_TRIES, sizeof(ns[0]), by_ns);
	return (uint32_t)ns[FAULT_TRIES / 2];
}

/* If the runtime is in a child, describes the process that the user named. It may have ended already. */
static int describe_given(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	pid_t pid = ses->launch.pid ? ses->launch.pid : ses->named ? tgt_pid(ses->named) : 0;
	struct tgt *t = NULL;

	if (!pid || pid == tgt_pid(of->tgt))
		return 0;
	s->given_pid = (uint32_t)pid;
	if (tgt_open(pid, &t, NULL))
		t = NULL;
	s->given_comm = dup_or_empty(t ? tgt_comm(t) : ses->launch.pid ? ses->o->command[0] : NULL);
	s->given_cmdline = dup_or_empty(t ? tgt_cmdline(t) : NULL);
	tgt_close(t);
	return s->given_comm && s->given_cmdline ? 0 : -ENOMEM;
}

int ses_describe(struct session *ses)
{
	const struct ses_target *of = &ses->targets[0];
	const struct adp *a = of->plan.adp;
	struct mdl_session *s = &ses->about;
	char host[256] = "", python[PY_RELEASE_BYTES];

	gethostname(host, sizeof(host) - 1);
	s->mxbpf_version = strdup(MXBPF_VERSION);
	s->python = strdup(py_release(of->tgt, python));
	s->pid = (uint32_t)tgt_pid(of->tgt);
	s->details = ses->details;
	s->features = ses->o->features | (ses->o->gpu ? GPU_BIT : 0);
	s->sample_hz = ses->o->sample_hz;
	s->comm = dup_or_empty(tgt_comm(of->tgt));
	s->cmdline = dup_or_empty(tgt_cmdline(of->tgt));
	s->hostname = strdup(host);
	if (!s->hostname || ses_describe_host(s) || ses_role_note(ses, of->tgt) || ses_labels_note(ses, of->tgt))
		return -ENOMEM;
	s->job_backend = a->job_backend && s->nprocesses ? strdup(a->job_backend) : NULL;
	describe_rank(ses, of, s);
	s->trace_form = dup_or_empty(of->plan.adp->trace_form);
	s->fault_own_ns = fault_own_ns();
	s->fault_ns = s->fault_own_ns * (is_virtual() ? HOST_TOO : 1);
	if (!s->mxbpf_version || !s->python || !s->comm || !s->cmdline || !s->hostname || !s->trace_form ||
	    describe_lib(ses->first, s) || describe_given(ses, of, s) || describe_probes(ses->first, s) ||
	    describe_devices(ses->first, s) || describe_tables(ses, of, s) || describe_notes(ses, of, s))
		return -ENOMEM;
	return 0;
}

int ses_describe_build(struct ses_build *b)
{
	struct session *ses = b->ses;
	struct mdl_session *s = &ses->about;

	return describe_lib(b, s) || describe_probes(b, s) || describe_devices(b, s) || describe_tables(ses, b->of, s)
		       ? -ENOMEM
		       : 0;
}
