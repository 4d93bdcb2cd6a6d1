// SPDX-License-Identifier: Apache-2.0
/* Finds names of spans: the plan's own names, constants of the library, classes of objects, and bytes that BPF read. */
#include "symbols/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "mxbpf_kv.h"
#include "ring/ring.h"

#define CLASS_BYTES_MAX 256

/*
 * Reads a constant of the library from the file, because the process may have ended and its page may never have been
 * loaded.
 */
static int static_name(struct sym *s, uint64_t id, char *text)
{
	uint64_t va = id & ~MXBPF_NAME_STATIC_BIT;
	struct elf *elf;
	int err;

	err = tgt_lib_elf(s->o.target, s->o.plan->lib, &elf, NULL);
	return err ? err : elf_read_str_va(elf, va, text, MXBPF_NAME_BYTES_MAX);
}

/* Joins the parts of a mangled name such as "N5outer5inner12AddBackward0E" by "::", without the scope in `scope`. */
static void class_name(const char *mangled, const char *scope, char *text, size_t max)
{
	const char *p = mangled + (*mangled == 'N');
	size_t len = 0, n = scope ? strlen(scope) : 0;
	char *end;

	text[0] = '\0';
	for (unsigned long part; (part = strtoul(p, &end, 10)) && strlen(end) >= part; p = end + part) {
		bool nameless = part == strlen("_GLOBAL__N_1") && !strncmp(end, "_GLOBAL__N_1", part);

		len += (size_t)snprintf(text + len, len < max ? max - len : 0, "%s%.*s", len ? "::" : "",
					nameless ? 32 : (int)part, nameless ? "(anonymous namespace)" : end);
	}
	if (!len || len >= max) /* a template or the like: better mangled than cut */
		snprintf(text, max, "%s", mangled);
	else if (n && !strncmp(text, scope, n))
		memmove(text, text + n, len - n + 1);
}

/* Returns the text that the row with this tag puts before the name of a class. */
static const char *tag_prefix(const struct sym *s, unsigned tag)
{
	unsigned i;

	for (i = 0; tag && i < s->o.plan->adp->nprobes; i++)
		if (s->o.plan->adp->probes[i].row.name_tag == tag && s->o.plan->adp->probes[i].span_name)
			return s->o.plan->adp->probes[i].span_name;
	return "";
}

/*
 * Reads the class of an object by its vtable. The word before the vtable points to the type_info, whose second word is
 * the mangled name.
 */
static int read_class(const struct tgt *t, uint64_t vtable, char mangled[CLASS_BYTES_MAX])
{
	uint64_t info, name;
	size_t n = 0;

	if (tgt_read(t, vtable - sizeof(info), &info, sizeof(info)) ||
	    tgt_read(t, info + sizeof(name), &name, sizeof(name)))
		return -EFAULT;
	do
		if (tgt_read(t, name + n, &mangled[n], 1))
			return -EFAULT;
	while (mangled[n] && ++n < CLASS_BYTES_MAX - 1);
	mangled[n] = '\0';
	return 0;
}

/*
 * Reads the class of an object in the first process if that maps the same library, or else in the object's own process.
 */
static int class_of(struct sym *s, uint32_t tgid, uint64_t id, char mangled[CLASS_BYTES_MAX])
{
	uint64_t vtable = id & MXBPF_NAME_ADDR_MASK;
	unsigned image = id >> MXBPF_NAME_IMAGE_SHIFT & MXBPF_NAME_IMAGE_MASK;
	const struct mxbpf_image *here =
		image && image <= MXBPF_IMAGES_MAX ? &s->o.plan->target.images[image - 1] : NULL;
	struct mxbpf_target target;
	struct tgt *t = NULL;
	int err = -EFAULT;

	if ((here && here->end) || tgid == (uint32_t)tgt_pid(s->o.target))
		err = read_class(s->o.target, vtable + (here ? here->base : 0), mangled);
	if (!err || !att_has(s->att, (pid_t)tgid, &target) || tgt_open((pid_t)tgid, &t, NULL))
		return err;
	err = read_class(t, vtable + (here ? target.images[image - 1].base : 0), mangled);
	tgt_close(t);
	return err;
}

static int object_name(struct sym *s, uint32_t tgid, uint64_t id, char *text)
{
	unsigned tag = id >> MXBPF_NAME_TAG_SHIFT & MXBPF_NAME_TAG_MASK;
	char mangled[CLASS_BYTES_MAX] = "", class[CLASS_BYTES_MAX];
	int err = class_of(s, tgid, id, mangled);

	if (err)
		return err;
	class_name(mangled + (*mangled == '*'), s->o.plan->adp->object_scope, class, sizeof(class));
	return snprintf(text, MXBPF_NAME_BYTES_MAX, "%s%s", tag_prefix(s, tag), class);
}

/*
 * Returns the pattern of a tag. The bytes that BPF read replace its star, as in "_backward_*::pure_python". A pattern
 * without a star goes before them. The tag after one with a star means the part of that before "::". *len is 0 for no
 * pattern.
 */
static const char *tag_pattern(const struct sym *s, unsigned tag, size_t *len)
{
	const char *own = tag_prefix(s, tag), *before = tag < 2 ? "" : tag_prefix(s, tag - 1);

	*len = strlen(own);
	if (strchr(own, '*') || !strchr(before, '*') || !strstr(before, "::"))
		return own;
	*len = (size_t)(strstr(before, "::") - before);
	return before;
}

static int read_tagged(struct sym *s, uint64_t id, char *text, unsigned *tag)
{
	int n = ring_read_name(att_names_fd(s->att), id, text, tag);
	const char *pattern, *star;
	size_t len, before;

	if (n < 0 || *tag == MXBPF_NAME_TAG_PAIR)
		return n;
	pattern = tag_pattern(s, *tag, &len);
	if (!len || (size_t)n + len > MXBPF_NAME_BYTES_MAX)
		return n;
	star = memchr(pattern, '*', len);
	before = star ? (size_t)(star - pattern) : len;
	memmove(text + before, text, (size_t)n);
	memcpy(text, pattern, before);
	if (!star)
		return n + (int)len;
	memcpy(text + before + n, star + 1, len - before - 1);
	return n + (int)len - 1;
}

/* Returns the name of one half of a pair. A function of the runtime's autograd engine has an empty type. */
static int read_half(struct sym *s, uint64_t id, char *text, unsigned *tag)
{
	return id == MXBPF_NAME_UNNAMED ? 0 : read_tagged(s, id, text, tag);
}

/* Replaces the two name ids in the text by the names. */
static int read_pair(struct sym *s, char *text)
{
	uint64_t ids[2];
	unsigned tag;
	int first, second;

	memcpy(ids, text, sizeof(ids));
	first = read_half(s, ids[0], text, &tag);
	if (first < 0 || first > MXBPF_NAME_BYTES_MAX / 2)
		return first < 0 ? first : -ENAMETOOLONG;
	second = read_half(s, ids[1], s->second, &tag);
	if (second < 0 || second > MXBPF_NAME_BYTES_MAX / 2 - 8)
		return second < 0 ? second : -ENAMETOOLONG;
	memcpy(text + first, "::", 2);
	memcpy(text + first + 2, s->second, (size_t)second);
	return first + 2 + second;
}

static int read_name(struct sym *s, uint64_t id, char *text)
{
	unsigned tag;
	int len = read_tagged(s, id, text, &tag);

	return len == 2 * sizeof(uint64_t) && tag == MXBPF_NAME_TAG_PAIR ? read_pair(s, text) : len;
}

int sym_span_name(struct sym *s, uint32_t tgid, uint64_t id, char *text)
{
	const char *planned = plan_span_name(s->o.plan, id);

	if (id == MXBPF_NAME_UNNAMED)
		planned = "[unnamed]";
	if (planned)
		return snprintf(text, MXBPF_NAME_BYTES_MAX, "%s", planned);
	if (id & MXBPF_NAME_STATIC_BIT && id & MXBPF_NAME_OBJECT_BIT)
		return object_name(s, tgid, id, text);
	if (id & MXBPF_NAME_STATIC_BIT)
		return static_name(s, id, text);
	return read_name(s, id, text);
}
