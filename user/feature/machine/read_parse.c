// SPDX-License-Identifier: Apache-2.0
/* Parses texts of the kernel, and refuses anything else. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/machine/read_priv.h"

#define UNLIMITED_FROM (1ull << 62) /* version 1 writes "no limit" as the largest number of bytes in complete pages */

/* Parses a number of digits only. *end is after it. */
static bool machine_number(const char *p, uint64_t *value, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)*p))
		return false;
	errno = 0;
	*value = strtoull(p, &stop, 10);
	*end = stop;
	return !errno;
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t\n");
}

/* Returns the text after key and a blank, in the line that begins with them; NULL: none. */
static const char *line_of(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, key, len) && text[len] == ' ')
			return text + len + 1;
	}
	return NULL;
}

static int parse_number(const struct machine_source *from, const char *text, uint64_t *value)
{
	const char *end;

	if (!strncmp(text, "max", 3) || *text == '-') {
		*value = MXBPF_GAUGE_NO_LIMIT;
		return 0;
	}
	if (!machine_number(text, value, &end))
		return -ENODATA;
	if (from->controller && *value >= UNLIMITED_FROM)
		*value = MXBPF_GAUGE_NO_LIMIT;
	return 0;
}

static int parse_keyed(const struct machine_source *from, const char *text, uint64_t *value)
{
	const char *p = line_of(text, from->key), *end;

	return p && machine_number(p, value, &end) ? 0 : -ENODATA;
}

static int parse_ticks(const struct machine_source *from, const char *text, uint64_t *value)
{
	const char *p = line_of(text, from->key);
	uint64_t n;
	unsigned i;

	if (!p)
		return -ENODATA;
	*value = 0;
	for (i = 0; from->fields >> i; i++) {
		p += strspn(p, " ");
		if (!machine_number(p, &n, &p))
			return -ENODATA;
		if (from->fields >> i & 1)
			*value += n;
	}
	return 0;
}

static int parse_stall(const struct machine_source *from, const char *text, uint64_t *value)
{
	const char *p = line_of(text, from->key), *total, *end;

	total = p ? strstr(p, "total=") : NULL;
	if (!total || memchr(p, '\n', (size_t)(total - p)))
		return -ENODATA;
	return machine_number(total + strlen("total="), value, &end) ? 0 : -ENODATA;
}

static int parse_quota(const struct machine_source *from, const char *text, uint64_t *value)
{
	uint64_t quota, period;
	const char *p = text;

	if (!strncmp(text, "max", 3) || *text == '-') {
		*value = MXBPF_GAUGE_NO_LIMIT;
		return 0;
	}
	if (!machine_number(p, &quota, &p) || !machine_number(skip_blanks(p), &period, &p) || !period ||
	    __builtin_mul_overflow(quota, 1000, &quota))
		return -ENODATA;
	*value = quota / period;
	return 0;
}

/* An empty list means the CPUs of the parent group, which this file does not show. */
static int parse_cpus(const struct machine_source *from, const char *text, uint64_t *value)
{
	uint64_t first, last, n = 0;
	const char *p = text;

	do {
		p += n && *p == ',';
		if (!machine_number(p, &first, &p))
			return -ENODATA;
		last = first;
		if (*p == '-' && !machine_number(p + 1, &last, &p))
			return -ENODATA;
		if (last < first || last > UINT16_MAX)
			return -ENODATA;
		n += last - first + 1;
	} while (*p == ',');
	*value = n;
	return 0;
}

typedef int (*parse_fn)(const struct machine_source *from, const char *text, uint64_t *value);

static const parse_fn forms[] = {
	[MACHINE_FORM_NUMBER] = parse_number, [MACHINE_FORM_KEYED] = parse_keyed, [MACHINE_FORM_TICKS] = parse_ticks,
	[MACHINE_FORM_STALL] = parse_stall,   [MACHINE_FORM_QUOTA] = parse_quota, [MACHINE_FORM_CPUS] = parse_cpus,
};

int mach_parse(const struct machine_source *from, const char *text, uint64_t *value)
{
	int err = forms[from->form](from, text, value);

	if (!err && from->times && __builtin_mul_overflow(*value, from->times, value))
		err = -ENODATA;
	return err;
}

/* ---- frequencies */

bool mach_next_cpu(const char *text, size_t *pos, unsigned *cpu, uint64_t *busy, uint64_t *all)
{
	/* user nice system idle iowait irq softirq steal; stolen time is not idle */
	static const bool idle[8] = {[3] = true, [4] = true};
	const char *p = text + *pos;
	uint64_t n;
	unsigned i;

	if (!*pos) /* skip the first line, which is the sum of all CPUs */
		p = strchr(p, '\n') ? strchr(p, '\n') + 1 : "";
	if (strncmp(p, "cpu", 3) || !machine_number(p + 3, &n, &p) || n > UINT16_MAX)
		return false;
	*cpu = (unsigned)n;
	*busy = *all = 0;
	for (i = 0; i < 8; i++) {
		p += strspn(p, " ");
		if (!machine_number(p, &n, &p))
			return false;
		*all += n;
		*busy += idle[i] ? 0 : n;
	}
	p = strchr(p, '\n');
	if (!p)
		return false;
	*pos = (size_t)(p + 1 - text);
	return true;
}

int mach_cpuinfo_khz(const char *text, unsigned cpu, uint64_t *khz)
{
	const char *p = text, *end, *mhz, *next;
	uint64_t n, thousandths = 0, digit = 100;

	for (; p; p = strstr(p, "\nprocessor")) {
		p += *p == '\n';
		next = strstr(p, "\n\n");
		end = strchr(p, ':');
		if (strncmp(p, "processor", 9) || !end || !machine_number(skip_blanks(end + 1), &n, &end) || n != cpu)
			continue;
		mhz = strstr(p, "\ncpu MHz");
		end = mhz && (!next || mhz < next) ? strchr(mhz, ':') : NULL;
		if (!end || !machine_number(skip_blanks(end + 1), &n, &end) || n > UINT32_MAX)
			return -ENODATA;
		for (end += *end == '.'; isdigit((unsigned char)*end) && digit; end++, digit /= 10)
			thousandths += digit * (uint64_t)(*end - '0');
		*khz = n * 1000 + thousandths;
		return *khz ? 0 : -ENODATA;
	}
	return -ENODATA;
}

/* ---- groups */

/* Returns true if a comma-separated list has that word. */
static bool has_word(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);
	const char *end = list + len, *p = list;

	for (; p && p < end; p = memchr(p, ',', (size_t)(end - p)), p = p ? p + 1 : NULL)
		if ((size_t)(end - p) >= n && !memcmp(p, word, n) && (p + n == end || p[n] == ','))
			return true;
	return false;
}

int mach_group_path(const char *text, const char *controller, char path[MACH_PATH_BYTES])
{
	static const char removed[] = " (deleted)";
	const char *line, *next, *first, *second;
	size_t len;

	for (line = text; *line; line = *next ? next + 1 : next) {
		next = strchrnul(line, '\n');
		first = memchr(line, ':', (size_t)(next - line));
		second = first ? memchr(first + 1, ':', (size_t)(next - first - 1)) : NULL;
		if (!second || (controller ? !has_word(first + 1, (size_t)(second - first - 1), controller)
					   : second != first + 1 || line + 1 != first || *line != '0'))
			continue;
		len = (size_t)(next - second - 1);
		if (len >= MACH_PATH_BYTES)
			return -E2BIG;
		memcpy(path, second + 1, len);
		path[len] = '\0';
		if (len >= strlen(removed) && !strcmp(path + len - strlen(removed), removed))
			return -ESTALE;
		return *path == '/' ? 0 : -ENOENT;
	}
	return -ENOENT;
}

/*
 * Copies a field of mountinfo into a buffer of MACH_PATH_BYTES and decodes octal escapes such as \040. Returns false if
 * it is too long.
 */
static bool unescape(const char *p, size_t len, char *to)
{
	const char *end = p + len;
	size_t n = 0;

	for (; p < end && n < MACH_PATH_BYTES - 1; n++) {
		bool octal = *p == '\\' && end - p >= 4 && strspn(p + 1, "01234567") >= 3;

		to[n] = octal ? (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0')) : *p;
		p += octal ? 4 : 1;
	}
	to[n] = '\0';
	return p == end;
}

/* Returns the part of path below root, or NULL. */
static const char *machine_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (!strcmp(root, "/"))
		return strncmp(path, "/..", 3) || (path[3] && path[3] != '/') ? path : NULL;
	if (strncmp(path, root, len) || (path[len] && path[len] != '/'))
		return NULL;
	return path[len] ? path + len : "/";
}

#define MOUNT_FIELDS 5 /* id, parent, device, root, mount point; then options, tags, "-", type, source, options */

struct mount {
	char root[MACH_PATH_BYTES], point[MACH_PATH_BYTES];
};

/* Returns true if a line (up to `end`) is a mount of that hierarchy. */
static bool is_mount(const char *line, const char *end, const char *controller, struct mount *m)
{
	const char *field[MOUNT_FIELDS], *type, *p = line;
	size_t len[MOUNT_FIELDS];
	unsigned i;

	for (i = 0; i < MOUNT_FIELDS; i++) {
		field[i] = p;
		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return false;
		len[i] = (size_t)(p++ - field[i]);
	}
	type = memmem(p, (size_t)(end - p), " - ", 3);
	if (!type)
		return false;
	type += 3;
	if (!controller && strncmp(type, "cgroup2 ", 8))
		return false;
	if (controller) {
		p = memrchr(type, ' ', (size_t)(end - type));
		if (strncmp(type, "cgroup ", 7) || !has_word(p + 1, (size_t)(end - p - 1), controller))
			return false;
	}
	return unescape(field[3], len[3], m->root) && unescape(field[4], len[4], m->point);
}

static bool climbs(const char *path)
{
	const char *p = path;

	for (; (p = strstr(p, "/..")); p += 3)
		if (!p[3] || p[3] == '/')
			return true;
	return false;
}

int mach_group_dir(const char *mountinfo, const char *controller, const char *path, char dir[MACH_PATH_BYTES],
		   size_t *mount_len)
{
	size_t best = SIZE_MAX, room = MACH_PATH_BYTES - 64; /* leaves room for a prefix and the name of a file */
	const char *line, *next, *rest;
	struct mount m;

	for (line = mountinfo; *line; line = *next ? next + 1 : next) {
		next = strchrnul(line, '\n');
		if (!is_mount(line, next, controller, &m))
			continue;
		rest = machine_below(path, m.root);
		/* The last of several equal mounts wins, because it may cover the others. */
		if (!rest || climbs(rest) || strlen(m.root) > best || strlen(m.point) + strlen(rest) >= room)
			continue;
		best = strlen(m.root);
		*mount_len = strlen(m.point);
		memcpy(dir, m.point, *mount_len);
		strcpy(dir + *mount_len, !strcmp(rest, "/") ? "" : rest);
	}
	return best == SIZE_MAX ? -ENOENT : 0;
}
