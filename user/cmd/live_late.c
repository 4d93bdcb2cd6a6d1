// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries that a process makes and maps while it runs, hundreds perhaps: each is planned once, and probed in every
 * process that maps it. What is not probed is counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/live.h"

#define LATE_LIBS_MAX	  4096 /* looked at */
#define LATE_ATTACHED_MAX 256  /* probed: each takes file descriptors */

bool live_late_wanted(const struct live *l)
{
	size_t i;

	for (i = 0; i < l->plan.nprobes; i++)
		if (l->plan.probes[i].wanted && l->plan.probes[i].row->each_lib)
			return true;
	return false;
}

static void refused(struct live *l, const struct tgt_lib *lib, const char *why)
{
	l->session.late_refused++;
	if (l->o->verbose)
		cmd_warn("%s is not probed: %s", lib->path, why);
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

/* Of a file that stays open. */
static int own_lib(struct late_lib *new, const struct tgt_lib *lib)
{
	struct plan_site *site = (struct plan_site *)new->plan.sites.data;
	size_t i;
	int fd = open(lib->open_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
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

/* The report says where what bears such a name came from. */
static int describe(struct live *l, const struct late_lib *lib)
{
	const struct adp *a = l->plan.adp;
	unsigned cls = lib->plan.rows[0].cls;
	struct mdl_session *s = &l->session;
	struct mdl_lib *libs = realloc(s->libs, (s->nlibs + 1) * sizeof(*libs));

	if (!libs)
		return -ENOMEM;
	s->libs = libs;
	libs[s->nlibs] = (struct mdl_lib){strdup(lib->lib.path), strdup(""), strdup("")};
	if (!libs[s->nlibs].path || !libs[s->nlibs].build_id || !libs[s->nlibs].runtime)
		return -ENOMEM;
	s->nlibs++;
	if (!s->class_title[cls])
		s->class_title[cls] = strdup(a->class_title[cls]);
	return s->class_title[cls] ? 0 : -ENOMEM;
}

/* Numbers of functions go on behind those of the plan, one a library. */
static void plan_lib(struct live *l, struct tgt *t, struct tgt_lib *lib, const struct plan_probe *probe,
		     struct late_lib *new)
{
	uint32_t func = (uint32_t)buf_count(&l->plan.funcs, uint64_t) + l->late.nattached;
	struct err why = {0};
	const char *name;
	int err;

	if (l->late.nattached < LATE_ATTACHED_MAX && func < MXBPF_FUNCS_MAX)
		err = plan_late(&l->plan, probe, t, lib, func, &new->plan, &why);
	else
		err = err_set(&why, ERR_RUNTIME, -E2BIG, "%u such libraries are already", l->late.nattached);
	if (!err)
		err = own_lib(new, lib);
	if (!err)
		err = describe(l, new);
	if (err) {
		new->plan.sites.len = 0;
		if (err != -ENOENT) /* there are such libraries without a kernel */
			refused(l, lib, why.code ? why.why : strerror(-err));
		return;
	}
	l->late.nattached++;
	name = plan_func_name(&new->plan, new->plan.probes, func);
	pthread_mutex_lock(&l->lock);
	live_add_name(l, MXBPF_NAME_SPAN, (uint32_t)tgt_pid(t), *buf_at(&new->plan.funcs, uint64_t, 0), name);
	pthread_mutex_unlock(&l->lock);
}

/* Said and counted once, however often it is met. */
static int no_room(struct live *l, const struct tgt_lib *lib)
{
	uint64_t *told = hash_put(&l->late.beyond, lib->ino, lib->dev);

	if (told && !*told)
		refused(l, lib, "there are too many");
	if (told)
		*told = 1;
	return -1;
}

/* Its index; -1: there is no room. */
static int lib_of(struct live *l, struct tgt *t, struct tgt_lib *lib, const struct plan_probe *probe)
{
	struct late_lib **libs = l->late.libs, *new;
	unsigned i;

	for (i = 0; i < l->late.nlibs; i++)
		if (libs[i]->lib.dev == lib->dev && libs[i]->lib.ino == lib->ino)
			return (int)i;
	if (i == LATE_LIBS_MAX)
		return no_room(l, lib);
	libs = libs ? libs : calloc(LATE_LIBS_MAX, sizeof(*libs));
	new = libs ? calloc(1, sizeof(*new)) : NULL;
	l->late.libs = libs;
	if (!new)
		return -1;
	new->lib.dev = lib->dev;
	new->lib.ino = lib->ino;
	plan_lib(l, t, lib, probe, new);
	libs[l->late.nlibs++] = new;
	return (int)i;
}

static void attach_lib(struct live *l, pid_t tgid, unsigned index)
{
	struct late_lib *lib = l->late.libs[index];
	uint64_t *in = lib->plan.sites.len ? hash_put(&l->late.in, (uint64_t)tgid, index) : NULL;
	struct err e = {0};

	if (!in || *in)
		return;
	*in = 1; /* it is not tried again */
	if (att_add(l->att, &lib->plan, tgid, &e))
		refused(l, &lib->lib, e.why);
	else
		l->session.late_libs++;
}

void live_late_look(struct live *l, struct tgt *t)
{
	const struct plan_probe *p;
	struct tgt_lib *lib;
	size_t i;
	int index;

	for (i = 0; i < tgt_nlibs(t); i++) {
		lib = tgt_lib(t, i);
		for (p = l->plan.probes; p < l->plan.probes + l->plan.nprobes && !plan_is_late(p, lib); p++)
			;
		index = p < l->plan.probes + l->plan.nprobes ? lib_of(l, t, lib, p) : -1;
		if (index >= 0)
			attach_lib(l, tgt_pid(t), (unsigned)index);
	}
}

void live_late_fork(struct live *l, pid_t child, pid_t parent)
{
	unsigned i;

	for (i = 0; i < l->late.nlibs; i++)
		if (hash_get(&l->late.in, (uint64_t)parent, i))
			attach_lib(l, child, i);
}

/* By links that all processes share, those that are probed in any. */
int live_late_share(struct live *l, struct err *e)
{
	unsigned i;
	int err = 0;

	for (i = 0; !err && i < l->late.nlibs; i++)
		if (l->late.libs[i]->plan.sites.len)
			err = att_add(l->att, &l->late.libs[i]->plan, 0, e);
	return err;
}

void live_late_leave(struct live *l, pid_t tgid)
{
	uint64_t in;
	unsigned i;

	for (i = 0; i < l->late.nlibs; i++)
		hash_del(&l->late.in, (uint64_t)tgid, i, &in);
}

void live_late_free(struct live *l)
{
	unsigned i;

	for (i = 0; i < l->late.nlibs; i++)
		free_lib(l->late.libs[i]);
	free(l->late.libs);
	hash_fini(&l->late.in);
	hash_fini(&l->late.beyond);
	l->late = (struct late){0};
}
