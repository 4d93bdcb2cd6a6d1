// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries that a process makes and maps while it runs, such as compiled kernels. There may be hundreds. Each
 * is planned once, and probed in every process that maps it. Libraries that are not probed are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/slice.h"
#include "session/priv.h"
#include "targets/targets.h"

#define LATE_LIBS_MAX	  4096 /* libraries that are planned */
#define LATE_ATTACHED_MAX 256  /* libraries that are probed; each needs file descriptors */

static bool is_mapped(struct tgt *t, const struct plan_probe *p)
{
	size_t i;

	for (i = 0; i < tgt_nlibs(t); i++)
		if (plan_is_late(p, t, tgt_lib(t, i)))
			return true;
	return false;
}

/*
 * To watch the loader takes time at the end. A job that has not mapped CUDA or NVTX with its runtime will hardly do so
 * later, except for the injection library of a command.
 */
bool ses_late_wanted(const struct ses_build *b)
{
	const struct ses_target *of = b->of;
	const struct plan_probe *p;

	if (b->ses->o->gpu || b->ses->nvtx.offered) /* each process that maps CUDA's driver, or uses NVTX */
		return true;
	for (p = of->plan.probes; p < of->plan.probes + of->plan.nprobes; p++)
		if (p->wanted && p->row->each_lib &&
		    (!(p->row->group & (PROBE_CUDA | PROBE_LAUNCH | PROBE_MARK)) || is_mapped(of->tgt, p)))
			return true;
	return false;
}

static void refused(struct session *ses, const struct tgt_lib *lib, const char *why)
{
	ses->about.late_refused++;
	if (ses->o->verbose)
		ses_warn(ses, "%s is not probed: %s", lib->path, why);
}

static void free_lib(struct late_lib *lib)
{
	int fd = -1;

	if (lib->lib.open_path && sscanf(lib->lib.open_path, "/proc/self/fd/%d", &fd) == 1)
		close(fd);
	plan_fini(&lib->plan);
	free(lib->lib.path);
	free(lib->lib.open_path);
	free(lib);
}

/* Makes the plan independent of the process: the file stays open here. */
static int own_lib(struct late_lib *new, const struct tgt_lib *lib)
{
	struct plan_site *site = (struct plan_site *)new->plan.sites.data;
	size_t i;
	int fd = open(lib->open_path, O_PATH | O_CLOEXEC); /* a name, see target/far.h */

	if (fd < 0)
		return -errno;
	new->lib.size_bytes = lib->size_bytes;
	new->lib.written_ns = lib->written_ns;
	new->lib.path = strdup(lib->path);
	if (asprintf(&new->lib.open_path, "/proc/self/fd/%d", fd) < 0)
		new->lib.open_path = NULL;
	if (!new->lib.path || !new->lib.open_path)
		return -ENOMEM;
	new->plan.lib = new->plan.probes[0].lib = &new->lib;
	for (i = 0; i < buf_count(&new->plan.sites, struct plan_site); i++)
		site[i].lib = &new->lib;
	return 0;
}

static int describe_lib(struct mdl_session *s, const char *path)
{
	struct mdl_lib *libs;
	unsigned i;

	for (i = 0; i < s->nlibs; i++)
		if (!strcmp(s->libs[i].path, path))
			return 0;
	libs = realloc(s->libs, (s->nlibs + 1) * sizeof(*libs));
	if (!libs)
		return -ENOMEM;
	s->libs = libs;
	libs[s->nlibs] = (struct mdl_lib){strdup(path), strdup(""), strdup("")};
	if (!libs[s->nlibs].path || !libs[s->nlibs].build_id || !libs[s->nlibs].runtime)
		return -ENOMEM;
	s->nlibs++;
	return 0;
}

/* Adds the library to the session's description, and the title of the table that its calls go to. */
static int late_describe(struct ses_build *b, const struct late_lib *lib)
{
	const struct adp *a = b->of->plan.adp;
	unsigned cls = lib->plan.rows[0].cls;
	struct mdl_session *s = &b->ses->about;

	if (describe_lib(s, lib->lib.path))
		return -ENOMEM;
	if (lib->plan.rows[0].action != MXBPF_ACT_OPEN || s->class_title[cls])
		return 0;
	if (cls == MXBPF_CLASS_CUDA &&
	    ses_add_note(s, "cuda", "%s",
			 b->ses->o->gpu ? "calls of CUDA are from probes while CUPTI did not deliver them"
					: "CUDA calls are from probes; --gpu shows the kernels"))
		return -ENOMEM;
	s->class_title[cls] = strdup(a->class_title[cls] ? a->class_title[cls] : lib->plan.probes[0].row->title);
	return s->class_title[cls] ? 0 : -ENOMEM;
}

/* The names of its functions, whose numbers come after those of the plan and of the libraries before. */
static void name_funcs(struct session *ses, const struct tgt *t, const struct plan *p)
{
	const struct plan_name *name;
	size_t i;

	pthread_mutex_lock(&ses->lock);
	for (i = 0; i < buf_count(&p->names, struct plan_name); i++) {
		name = buf_at(&p->names, struct plan_name, i);
		ses_add_name(ses, MXBPF_NAME_SPAN, (uint32_t)tgt_pid(t), name->id, name->text);
	}
	pthread_mutex_unlock(&ses->lock);
}

static void plan_lib(struct ses_build *b, struct tgt *t, struct tgt_lib *lib, const struct plan_probe *probe,
		     struct late_lib *new)
{
	uint32_t func = (uint32_t)buf_count(&b->of->plan.funcs, uint64_t) + b->late.nfuncs;
	struct err why = {0};
	int err;

	if (b->late.nattached < LATE_ATTACHED_MAX && func < MXBPF_FUNCS_MAX)
		err = plan_late(&b->of->plan, probe, t, lib, func, &new->plan, &why);
	else
		err = err_set(&why, ERR_RUNTIME, -E2BIG,
			      "%u libraries that were loaded later are probed already, which is the limit",
			      b->late.nattached);
	if (!err)
		err = own_lib(new, lib);
	if (!err)
		err = late_describe(b, new);
	if (err) {
		new->plan.sites.len = 0;
		if (err != -ENOENT) /* some of these libraries have no kernel */
			refused(b->ses, lib, why.code ? why.why : strerror(-err));
		return;
	}
	b->late.nattached++;
	b->late.nfuncs += (uint32_t)buf_count(&new->plan.funcs, uint64_t);
	name_funcs(b->ses, t, &new->plan);
}

/* Warns and counts only once for each library. */
static struct late_lib *no_room(struct ses_build *b, const struct tgt_lib *lib)
{
	uint64_t *told = hash_put(&b->late.beyond, lib->ino, lib->dev);

	if (told && !*told)
		refused(b->ses, lib, "there are too many");
	if (told)
		*told = 1;
	return NULL;
}

/* Returns a library with this probe; NULL: there are too many. */
static struct late_lib *lib_of(struct ses_build *b, struct tgt *t, struct tgt_lib *lib, const struct plan_probe *probe)
{
	struct late_lib **libs = b->late.libs, *new;
	unsigned i;

	for (i = 0; i < b->late.nlibs; i++)
		if (libs[i]->lib.dev == lib->dev && libs[i]->lib.ino == lib->ino && libs[i]->row == probe->row)
			return libs[i];
	if (i == LATE_LIBS_MAX)
		return no_room(b, lib);
	libs = libs ? libs : calloc(LATE_LIBS_MAX, sizeof(*libs));
	new = libs ? calloc(1, sizeof(*new)) : NULL;
	b->late.libs = libs;
	if (!new)
		return NULL;
	new->row = probe->row;
	new->lib.dev = lib->dev;
	new->lib.ino = lib->ino;
	plan_lib(b, t, lib, probe, new);
	libs[b->late.nlibs++] = new;
	return new;
}

/* Iterates over the libraries that are probed in a process. */
#define EACH_LATE(p, at) for ((at) = (struct late_lib **)(p)->late.data; (at) < late_end(p); (at)++)
static struct late_lib **late_end(const struct ses_process *p)
{
	return (struct late_lib **)p->late.data + buf_count(&p->late, struct late_lib *);
}

/* Returns true if the library has probes of this group in the process, perhaps of another row. */
static bool is_probed(const struct ses_process *p, const struct tgt_lib *lib, enum probe_group group)
{
	struct late_lib **at;

	EACH_LATE(p, at)
	if ((*at)->lib.dev == lib->dev && (*at)->lib.ino == lib->ino && (*at)->row->group == group)
		return true;
	return false;
}

/* Returns whether the library is probed between slices. */
static bool late_stays(const struct late_lib *lib, enum late_kept kept)
{
	const struct buf *sites = &lib->plan.sites;

	return kept == LATE_ALL ||
	       (kept == LATE_ALWAYS && sites->len && plan_is_always(&lib->plan, buf_at(sites, struct plan_site, 0)));
}

static void attach_lib(struct ses_build *b, struct ses_process *p, struct late_lib *lib)
{
	struct late_lib **at;
	struct err e = {0};

	EACH_LATE(p, at)
	if (*at == lib)
		return;
	if (!lib->plan.sites.len || buf_put(&p->late, &lib, sizeof(lib))) /* do not try again, even if this fails */
		return;
	if (late_stays(lib, b->late.kept) && att_add(b->att, &lib->plan, (pid_t)p->tgid, &e))
		refused(b->ses, &lib->lib, e.why);
	else
		b->ses->about.late_libs++;
}

/*
 * While CUPTI tells the calls of CUDA, probes only count launches; while it does not, probes tell the calls. With the
 * agent nothing is counted, because a probe costs as much as all that the agent does for a call.
 */
static bool is_used(const struct ses_build *b, enum probe_group group)
{
	if (group == PROBE_LAUNCH)
		return b->late.counts && !b->ses->o->agent;
	return group != PROBE_CUDA || !b->late.counts;
}

/* Probes a library by the first row that is for it, and by all rows that are used beside others. */
static void late_look_at(struct ses_build *b, struct ses_process *in, struct tgt *t, struct tgt_lib *lib)
{
	const struct plan *plan = &b->of->plan;
	const struct plan_probe *p;
	struct late_lib *late;
	bool found = false;

	for (p = plan->probes; p < plan->probes + plan->nprobes; p++) {
		if (!is_used(b, p->row->group) || !plan_is_late(p, t, lib) || (found && !p->row->beside))
			continue;
		found = true;
		if (!p->row->beside && is_probed(in, lib, p->row->group))
			continue;
		late = lib_of(b, t, lib, p);
		if (late)
			attach_lib(b, in, late);
	}
}

void ses_late_look(struct ses_build *b, struct tgt *t)
{
	struct ses_process *p = ses_process_add(b->ses, (uint32_t)tgt_pid(t));
	size_t i;

	b->late.looked = true;
	ses_gpu_look(b->ses, t);
	for (i = 0; p && i < tgt_nlibs(t); i++)
		late_look_at(b, p, t, tgt_lib(t, i));
}

static void forget_group(struct ses_process *p, enum probe_group group)
{
	struct late_lib **at, **kept = (struct late_lib **)p->late.data;

	EACH_LATE(p, at)
	if ((*at)->row->group != group)
		*kept++ = *at;
	p->late.len = (size_t)((char *)kept - p->late.data);
}

/* Removes the probes of a group from all processes. */
static void remove_group(struct ses_build *b, enum probe_group group)
{
	struct ses_process *p;
	unsigned i;

	for (i = 0; i < b->late.nlibs; i++)
		if (b->late.libs[i]->row->group == group && b->late.libs[i]->plan.sites.len)
			att_remove(b->att, &b->late.libs[i]->plan);
	for (p = b->ses->processes.first; p; p = p->next)
		if (ses_build_of(b->ses, p->tgid) == b)
			forget_group(p, group);
}

static void choose_cuda(struct ses_build *b, bool spans)
{
	struct tgt *t;

	if (b->late.counts != spans)
		return;
	b->late.counts = !spans;
	if (!b->late.looked)
		return;
	if (!spans)
		remove_group(b, PROBE_CUDA);
	else if (!tgt_open(tgt_pid(b->of->tgt), &t, NULL)) {
		ses_late_look(b, t);
		tgt_close(t);
	}
}

void ses_late_cuda(struct session *ses, bool spans)
{
	struct ses_build *b;

	if (!(ses->want.groups & PROBE_LAUNCH))
		return;
	SES_EACH_BUILD(ses, b)
	choose_cuda(b, spans);
}

/* Launches that the row has counted in all libraries. */
static uint64_t launches_of(const struct ses_build *b, const struct adp_probe *row)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < b->late.nlibs; i++)
		if (b->late.libs[i]->row == row)
			sum += att_entries(b->att, &b->late.libs[i]->plan);
	return sum;
}

/* A launch of the runtime is a launch of the driver, too, if it goes through its exported functions. */
static uint64_t most_launches(const struct ses_build *b)
{
	uint64_t most = 0, n;
	unsigned i;

	for (i = 0; i < b->late.nlibs; i++) {
		if (b->late.libs[i]->row->group != PROBE_LAUNCH)
			continue;
		n = launches_of(b, b->late.libs[i]->row);
		most = n > most ? n : most;
	}
	return most;
}

uint64_t ses_late_launches(const struct session *ses)
{
	const struct ses_build *b;
	uint64_t sum = 0;

	SES_EACH_BUILD(ses, b)
	sum += most_launches(b);
	return sum;
}

void ses_late_fork(struct session *ses, struct ses_process *child, uint32_t parent)
{
	const struct ses_process *p = ses_process_of(ses, parent);
	struct late_lib **at;

	if (!p)
		return;
	EACH_LATE(p, at)
	attach_lib(ses_build_of(ses, parent), child, *at);
}

/* Attaches shared links to all libraries that are probed. */
int ses_late_share(struct ses_build *b, struct err *e)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < b->late.nlibs; i++)
		if (b->late.libs[i]->plan.sites.len && late_stays(b->late.libs[i], b->late.kept))
			err = att_add(b->att, &b->late.libs[i]->plan, 0, e);
	return err;
}

void ses_late_keep(struct ses_build *b, enum late_kept kept)
{
	const enum late_kept before = b->late.kept;
	struct late_lib *lib, **at;
	struct ses_process *p;
	struct err e = {0};
	unsigned i;

	b->late.kept = kept;
	for (i = 0; i < b->late.nlibs; i++) {
		lib = b->late.libs[i];
		if (lib->plan.sites.len && late_stays(lib, before) && !late_stays(lib, kept))
			att_remove(b->att, &lib->plan);
	}
	for (p = b->ses->processes.first; p; p = p->next) {
		if (ses_build_of(b->ses, p->tgid) != b)
			continue;
		EACH_LATE(p, at)
		if (!late_stays(*at, before) && late_stays(*at, kept) &&
		    att_add(b->att, &(*at)->plan, (pid_t)p->tgid, &e))
			refused(b->ses, &(*at)->lib, e.why);
	}
}

void ses_late_slice(struct ses_build *b, uint32_t tgid)
{
	const struct ses_process *p = ses_process_of(b->ses, tgid);
	struct late_lib **at;
	struct err e;

	if (!p)
		return;
	EACH_LATE(p, at)
	if ((*at)->row->group != PROBE_LAUNCH && !late_stays(*at, b->late.kept))
		att_slice_add(b->att, &(*at)->plan, tgid, &e);
}

void ses_late_free(struct ses_build *b)
{
	unsigned i;

	for (i = 0; i < b->late.nlibs; i++)
		free_lib(b->late.libs[i]);
	free(b->late.libs);
	hash_fini(&b->late.beyond);
	b->late = (struct late){0};
}
