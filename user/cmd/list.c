// SPDX-License-Identifier: Apache-2.0
/* `mxbpf list`: which processes have a runtime that mxbpf knows, and whether it can attach to them. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "attach/attach.h"
#include "base/buf.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "plan/plan.h"
#include "target/target.h"

#define WIDTH	     80
#define ADAPTERS_MAX 32
#define TEXT_BYTES   4400 /* an escaped path */

/* A process and one runtime that it has mapped. */
struct row {
	pid_t pid;
	char comm[32];
	char *cmdline, *path; /* owned; NULL: not readable */
	const struct adp *adp;
	const char *version; /* NULL: unknown build */
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
	bool deleted, attachable;
	struct tgt_container container;
	unsigned groups;       /* of probes that can be attached; valid if attachable */
	const char *short_why; /* why not all groups, in a word or two; NULL: all can be attached */
	char why[512];	       /* short_why as a sentence */
};

struct list {
	const char *globs[ADAPTERS_MAX + 1];
	struct err unsupported;	 /* why this machine does not support mxbpf; code 0: it does */
	struct buf rows;	 /* struct row */
	unsigned looked, hidden; /* processes; processes whose memory map is not readable */
};

/* ---- find processes */

static void list_refuse(struct row *r, const char *short_why, const struct err *e)
{
	r->attachable = false;
	r->short_why = e->cls == ERR_PRIVILEGE && e->code != -ENOTSUP ? "permission" : short_why;
	snprintf(r->why, sizeof(r->why), "%s", e->why);
}

/* Groups of probes that can be attached to an unknown build. The plan finds out from the code of the library. */
static unsigned groups_shown(const struct row *r, struct tgt *t)
{
	const struct plan_opts o = {.groups = ~0u, .runtime = r->adp->name, .lenient = true};
	struct plan plan = {0};
	struct err e = {0};
	unsigned groups = plan_make(t, &o, &plan, &e) ? plan_groups_of(r->adp, false) : plan_groups_left(&plan);

	plan_fini(&plan);
	return groups;
}

static void judge_build(struct row *r, struct tgt *t, const struct tgt_lib *lib)
{
	fmt_hex(lib->build_id, lib->build_id_bytes, r->build_id);
	r->version = plan_version(r->adp, lib);
	r->groups = !r->version && plan_calibrates(r->adp) ? groups_shown(r, t) : plan_groups_of(r->adp, r->version);
	if (r->groups == plan_groups_of(r->adp, true))
		return;
	r->short_why = "unknown build";
	r->attachable = r->groups & ~PROBE_LINK;
	snprintf(r->why, sizeof(r->why), "structure offsets are not verified for this build of %s",
		 strrchr(lib->path, '/') + 1);
}

/* Finds the first reason why `mxbpf --pid` would fail. */
static void list_judge(struct list *l, struct row *r, struct tgt *t, struct tgt_lib *lib)
{
	struct err e = {0};
	struct elf *elf;

	r->path = strdup(lib->path);
	r->cmdline = strdup(tgt_cmdline(t));
	r->deleted = lib->deleted;
	if (att_reaches(r->pid, &e))
		list_refuse(r, "namespace", &e);
	else if (tgt_lib_elf(t, lib, &elf, &e))
		list_refuse(r, e.code == -ESTALE ? "overwritten" : "unreadable", &e);
	else if (plan_check_packed(t, r->adp, lib, false, &e))
		list_refuse(r, "packed", &e);
	else
		judge_build(r, t, lib);
	if (r->attachable && l->unsupported.code)
		list_refuse(r, "kernel", &l->unsupported);
}

/* Skips a process that has ended. 0 or -ENOMEM. */
static int list_look_at(struct list *l, pid_t pid, unsigned mask)
{
	struct err e = {0};
	struct tgt *t = NULL;
	struct tgt_lib *lib;
	unsigned i;
	int err = tgt_open(pid, &t, &e), ret = 0;

	for (i = 0; !ret && adapters[i] && err != -ESRCH; i++) {
		struct row r = {.pid = pid, .adp = adapters[i], .attachable = true};

		lib = t ? tgt_find_lib(t, adapters[i]->lib_glob) : NULL;
		if ((!t && !(mask >> i & 1)) || (t && !lib))
			continue;
		tgt_peek_comm(pid, pid, r.comm);
		tgt_container(pid, &r.container);
		if (t)
			list_judge(l, &r, t, lib);
		else
			list_refuse(&r, err == -ENOTSUP ? "32-bit" : "unreadable", &e);
		ret = buf_put(&l->rows, &r, sizeof(r));
	}
	tgt_close(t);
	return ret;
}

static int by_pid(const void *a, const void *b)
{
	return ((const struct row *)a)->pid - ((const struct row *)b)->pid;
}

static int list_walk(struct list *l, struct err *e)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	unsigned mask;
	int err, ret = 0;

	if (!dir)
		return err_set(e, ERR_RUNTIME, -errno, "cannot read /proc: %s", strerror(errno));
	while (!ret && (d = readdir(dir))) {
		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		err = tgt_peek(atoi(d->d_name), l->globs, NULL, &mask);
		l->looked++;
		l->hidden += err == -EACCES || err == -EPERM;
		if (mask)
			ret = list_look_at(l, atoi(d->d_name), mask);
	}
	closedir(dir);
	qsort(l->rows.data, buf_count(&l->rows, struct row), sizeof(struct row), by_pid);
	return ret ? err_set(e, ERR_RUNTIME, ret, "out of memory") : 0;
}

/* ---- the table */

/* Returns "op,mem". */
static const char *group_words(unsigned groups, char buf[128])
{
	size_t len = 0, i;

	buf[0] = '\0';
	for (i = 0; plan_groups[i].name && len < 100; i++)
		if (plan_groups[i].help && (groups & plan_groups[i].group))
			len += (size_t)snprintf(buf + len, 128 - len, "%s%s", len ? "," : "", plan_groups[i].name);
	return buf;
}

static void pid_text(const struct row *r, char *text)
{
	snprintf(text, TEXT_BYTES, "%d", r->pid);
}

static void comm_text(const struct row *r, char *text)
{
	fmt_safe(text, TEXT_BYTES, r->comm, strlen(r->comm));
}

static void runtime_text(const struct row *r, char *text)
{
	snprintf(text, TEXT_BYTES, "%s %s", r->adp->title, r->version ? r->version : "?");
}

/* A process may have a namespace but no container's cgroup: in a sandbox, a chroot, with systemd's PrivateTmp. */
static void container_text(const struct row *r, char *text)
{
	const struct tgt_container *c = &r->container;

	snprintf(text, TEXT_BYTES, "%s",
		 c->id[0]	     ? c->id
		 : c->other_pid_ns   ? "(pid ns)"
		 : c->other_mount_ns ? "(mount ns)"
				     : "-");
}

static void attach_text(const struct row *r, char *text)
{
	char words[128];

	if (!r->attachable)
		snprintf(text, TEXT_BYTES, "no: %s", r->short_why);
	else if (r->short_why)
		snprintf(text, TEXT_BYTES, "%s only", group_words(r->groups, words));
	else
		snprintf(text, TEXT_BYTES, "yes");
}

static void library_text(const struct row *r, char *text)
{
	const size_t room = TEXT_BYTES - 16;
	size_t len = r->path ? fmt_safe(text, room, r->path, strlen(r->path)) : 0;

	len = len < room ? len : room - 1;
	snprintf(text + len, TEXT_BYTES - len, "%s", !r->path ? "-" : r->deleted ? " (deleted)" : "");
}

/* The last column takes the rest of the line. */
static const struct {
	const char *head;
	size_t max;
	void (*text)(const struct row *r, char *text);
} columns[] = {
	{"PID", 7, pid_text},	       {"COMMAND", 12, comm_text},
	{"RUNTIME", 20, runtime_text}, {"CONTAINER", 12, container_text},
	{"ATTACH", 20, attach_text},   {"LIBRARY", SIZE_MAX, library_text},
};
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))
#define LAST	 (NCOLUMNS - 1)

/* Prints the end of a path, or only its last name if nothing more fits. */
static void put_path(const char *text, size_t width)
{
	size_t n = fmt_columns(text);
	const char *base = strrchr(text, '/'), *end = n > width ? fmt_tail(text, width - 2) : text;

	if (n > width && base && end > base && fmt_columns(base + 1) <= width)
		printf("%s\n", base + 1);
	else
		printf("%s%s\n", n > width ? ".." : "", end);
}

/* Cuts the end of a text that is too long. put_path() cuts the beginning of a path. */
static void list_put_cell(const char *text, size_t c, size_t width)
{
	size_t n = fmt_columns(text);
	bool cut = n > width;
	const char *end = cut ? fmt_head(text, width - 2) : text + strlen(text);
	size_t used = fmt_columns(text) - fmt_columns(end) + (cut ? 2 : 0);

	if (c == LAST)
		put_path(text, width);
	else
		printf("%.*s%s%*s ", (int)(end - text), text, cut ? ".." : "", (int)(width - used), "");
}

static void print_table(const struct list *l)
{
	size_t widths[NCOLUMNS], left = cmd_columns() ? cmd_columns() : WIDTH, c, i, n;
	char text[TEXT_BYTES];

	for (c = 0; c < LAST; c++) {
		widths[c] = strlen(columns[c].head);
		for (i = 0; i < buf_count(&l->rows, struct row); i++) {
			columns[c].text(buf_at(&l->rows, struct row, i), text);
			n = fmt_columns(text);
			n = n < columns[c].max ? n : columns[c].max;
			widths[c] = n > widths[c] ? n : widths[c];
		}
		left -= left > widths[c] + 1 ? widths[c] + 1 : left;
	}
	widths[LAST] = left > 16 ? left : 16;
	for (c = 0; c < NCOLUMNS; c++)
		list_put_cell(columns[c].head, c, widths[c]);
	for (i = 0; i < buf_count(&l->rows, struct row); i++)
		for (c = 0; c < NCOLUMNS; c++) {
			columns[c].text(buf_at(&l->rows, struct row, i), text);
			list_put_cell(text, c, widths[c]);
		}
}

/* ---- JSON */

/* Writes null for NULL and for "". */
static void list_put_text(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_string(j, key, text);
	else
		json_null(j, key);
}

static void list_put_row(struct json *j, const struct row *r)
{
	size_t i;

	json_line(j, 4);
	json_object(j, NULL);
	json_i64(j, "pid", r->pid);
	list_put_text(j, "comm", r->comm);
	list_put_text(j, "cmdline", r->cmdline);
	list_put_text(j, "runtime", r->adp->title);
	list_put_text(j, "version", r->version);
	list_put_text(j, "library", r->path);
	list_put_text(j, "build_id", r->build_id);
	list_put_text(j, "reason", r->why);
	list_put_text(j, "container", r->container.id);
	json_bool(j, "deleted", r->deleted);
	json_bool(j, "other_pid_namespace", r->container.other_pid_ns);
	json_bool(j, "other_mount_namespace", r->container.other_mount_ns);
	json_bool(j, "attachable", r->attachable);
	json_array(j, "groups");
	for (i = 0; r->attachable && plan_groups[i].name; i++)
		if (plan_groups[i].help && r->groups & plan_groups[i].group)
			json_string(j, NULL, plan_groups[i].name);
	json_end(j);
	json_end(j);
}

/* Returns 0, or -errno with e set. */
static int print_json(const struct list *l, struct err *e)
{
	struct json j = {.exact = true};
	int err = out_open("-", false, &j.out, e);
	size_t i;

	if (err)
		return err;
	json_object(&j, NULL);
	json_line(&j, 2);
	json_u64(&j, "schema_version", 1);
	json_line(&j, 2);
	json_u64(&j, "looked_at", l->looked);
	json_line(&j, 2);
	json_u64(&j, "not_permitted", l->hidden);
	json_line(&j, 2);
	json_array(&j, "processes");
	for (i = 0; i < buf_count(&l->rows, struct row); i++)
		list_put_row(&j, buf_at(&l->rows, struct row, i));
	json_line(&j, 2);
	json_end(&j);
	json_line(&j, 0);
	json_end(&j);
	out_puts(j.out, "\n");
	return out_commit(j.out, e);
}

/* ---- the command */

static int nothing_found(const struct list *l)
{
	struct buf names = {0};
	struct err e = {0};
	int i;

	for (i = 0; adapters[i]; i++)
		buf_printf(&names, "%s%s", i ? " or " : "", adapters[i]->title);
	err_set(&e, ERR_TARGET, -ENOENT, "no process has loaded %.*s: looked at %u processes%s", (int)names.len,
		names.data, l->looked,
		!l->hidden  ? ""
		: geteuid() ? "; some of them cannot be read: run mxbpf with sudo"
			    : "; some of them cannot be read");
	buf_fini(&names);
	return cmd_fail(&e);
}

static void list_fini(struct list *l)
{
	size_t i;

	for (i = 0; i < buf_count(&l->rows, struct row); i++) {
		free(buf_at(&l->rows, struct row, i)->cmdline);
		free(buf_at(&l->rows, struct row, i)->path);
	}
	buf_fini(&l->rows);
}

int cmd_list(const struct cmd_opts *o)
{
	struct list l = {0};
	struct err e = {0};
	int i, code;

	for (i = 0; i < ADAPTERS_MAX && adapters[i]; i++)
		l.globs[i] = adapters[i]->lib_glob;
	att_pick(NULL, &l.unsupported);
	if (list_walk(&l, &e)) {
		code = cmd_fail(&e);
		goto out;
	}
	if (o->format != CMD_JSON && l.rows.len)
		print_table(&l);
	if (o->format == CMD_JSON && print_json(&l, &e)) {
		code = cmd_fail(&e);
		goto out;
	}
	code = l.rows.len ? CMD_OK : nothing_found(&l);
	if (l.rows.len && l.hidden)
		cmd_warn("%u of %u processes cannot be read%s", l.hidden, l.looked,
			 geteuid() ? ": run mxbpf with sudo" : "");
out:
	list_fini(&l);
	return code;
}
