// SPDX-License-Identifier: Apache-2.0
/* Parses /proc/PID/maps. File names in it are not trusted: they may contain any byte but NUL. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/hash.h"
#include "target/priv.h"

/* The kernel writes a newline in a name as \012 and changes no other byte, not even backslashes. */
static void unescape(char *path)
{
	char *from, *to = path;

	for (from = path; *from; from++) {
		if (!strncmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 3;
			continue;
		}
		*to++ = *from;
	}
	*to = '\0';
}

int tgt_map_parse(char *line, struct tgt_map *m)
{
	static const char suffix[] = " (deleted)";
	const size_t suffix_len = sizeof(suffix) - 1;
	unsigned int maj, min;
	char perms[5];
	int used = 0;
	size_t len;

	*m = (struct tgt_map){0};
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 "%n", &m->start, &m->end, perms,
		   &m->off, &maj, &min, &m->ino, &used) != 7)
		return -EBADMSG;
	if (m->start >= m->end || strlen(perms) != 4 || (line[used] && line[used] != ' '))
		return -EBADMSG;
	m->dev = makedev(maj, min);
	m->write = perms[1] == 'w';
	m->exec = perms[2] == 'x';
	m->path = line + used + strspn(line + used, " ");
	len = strlen(m->path);
	if (len > suffix_len && !strcmp(m->path + len - suffix_len, suffix)) {
		m->deleted = true;
		m->path[len - suffix_len] = '\0';
	}
	unescape(m->path);
	return 0;
}

static int add_slot(struct buf *slots, const struct tgt *t, const struct tgt_map *m)
{
	struct tgt_slot s = {.start = m->start, .end = m->end, .off = m->off, .fd = -1};

	s.lib.deleted = m->deleted;
	s.lib.dev = m->dev;
	s.lib.ino = m->ino;
	s.lib.path = strdup(m->path);
	if (asprintf(&s.lib.open_path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, t->pid, m->start, m->end) < 0)
		s.lib.open_path = NULL;
	if (s.lib.path && s.lib.open_path && !buf_put(slots, &s, sizeof(s)))
		return 0;
	free(s.lib.path);
	free(s.lib.open_path);
	return -ENOMEM;
}

int tgt_maps_libs(struct tgt *t, char *text)
{
	struct buf slots = {0};
	struct hash seen = {0};
	char *line, *save = NULL;
	uint64_t *known;
	struct tgt_map m;
	int err = 0;

	for (line = strtok_r(text, "\n", &save); line && !err; line = strtok_r(NULL, "\n", &save)) {
		/*
		 * Inode 0 is anonymous memory or [vdso]. A System V shared memory segment has an inode, but its name is
		 * no path.
		 */
		if (tgt_map_parse(line, &m) || !m.exec || !m.ino || m.path[0] != '/')
			continue;
		known = hash_put(&seen, m.dev, m.ino);
		if (!known)
			err = -ENOMEM;
		else if (!*known)
			err = add_slot(&slots, t, &m);
		if (known)
			*known = 1;
	}
	hash_fini(&seen);
	t->slots = (struct tgt_slot *)slots.data;
	t->nslots = buf_count(&slots, struct tgt_slot);
	return err;
}

/* A question about one mapping of a process. */
struct asked {
	uint64_t addr, off;
	const struct tgt_lib *lib;
	const char *path;
};

/* Returns true if a current mapping of the process satisfies `is`. */
static bool any_map(const struct tgt *t, bool (*is)(const struct tgt_map *m, const struct asked *a),
		    const struct asked *a)
{
	struct buf text = {0};
	char *line, *save = NULL;
	bool found = false;
	struct tgt_map m;

	if (!tgt_slurp(t->procfd, "maps", TGT_MAPS_MAX_BYTES, &text))
		for (line = strtok_r(text.data, "\n", &save); line && !found; line = strtok_r(NULL, "\n", &save))
			found = !tgt_map_parse(line, &m) && m.start <= a->addr && a->addr < m.end && is(&m, a);
	buf_fini(&text);
	return found;
}

static bool is_anonymous_code(const struct tgt_map *m, const struct asked *a)
{
	return m->exec && !m->ino && !m->path[0];
}

static bool is_writable(const struct tgt_map *m, const struct asked *a)
{
	(void)a;
	return m->write;
}

bool tgt_is_writable(const struct tgt *t, uint64_t addr)
{
	return any_map(t, is_writable, &(struct asked){.addr = addr});
}

static bool is_named(const struct tgt_map *m, const struct asked *a)
{
	return m->exec && !strcmp(m->path, a->path);
}

bool tgt_code_is_of(const struct tgt *t, uint64_t addr, const char *path)
{
	return any_map(t, is_named, &(struct asked){.addr = addr, .path = path});
}

bool tgt_code_is_anonymous(const struct tgt *t, uint64_t addr)
{
	return any_map(t, is_anonymous_code, &(struct asked){.addr = addr});
}

static bool is_of_lib(const struct tgt_map *m, const struct asked *a)
{
	return m->ino == a->lib->ino && m->dev == a->lib->dev && m->off + (a->addr - m->start) == a->off;
}

bool tgt_maps_has(const struct tgt *t, const struct tgt_lib *lib, uint64_t addr, uint64_t off)
{
	return any_map(t, is_of_lib, &(struct asked){.addr = addr, .off = off, .lib = lib});
}
