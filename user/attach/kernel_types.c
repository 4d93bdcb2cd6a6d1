// SPDX-License-Identifier: Apache-2.0
#include "attach/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE	  "/sys/kernel/btf/vmlinux"
#define DEPTH_MAX 32 /* of types in types */
#define NAMES_MAX 256

/* The names of all types in the BPF objects. Those that are no types of the kernel are not found in it. */
static const char *const wanted[] = {
#include "kernel_types.inc"
};
_Static_assert(sizeof(wanted) / sizeof(wanted[0]) < NAMES_MAX, "more names than a bucket's number can hold");

struct copier {
	const struct btf_type **types; /* of the kernel, by id */
	const char *strings;
	uint32_t n, strings_len;
	struct btf *to;
	int32_t *copies;		/* ids there; 0: not copied */
	uint8_t buckets[NAMES_MAX * 2]; /* hash of a name -> its index + 1 */
};

/* ---- the kernel's types */

static size_t bytes_of(const struct btf_type *t)
{
	const size_t n = btf_vlen(t);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(*t) + sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*t) + n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return sizeof(*t) + n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*t) + n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return sizeof(*t) + n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*t);
	default:
		return 0;
	}
}

/* Fills types[]: where each type is, by its id. */
static bool index_types(struct copier *c, const char *data, size_t bytes)
{
	const struct btf_header *h = (const void *)data;
	const char *at, *end;
	uint32_t room = 1 << 18;
	size_t size;

	if (bytes < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len > bytes || h->type_off > bytes - h->hdr_len ||
	    h->type_len > bytes - h->hdr_len - h->type_off || h->str_off > bytes - h->hdr_len ||
	    h->str_len > bytes - h->hdr_len - h->str_off || !h->str_len)
		return false;
	c->strings = data + h->hdr_len + h->str_off;
	c->strings_len = h->str_len;
	at = data + h->hdr_len + h->type_off;
	end = at + h->type_len;
	c->types = malloc(room * sizeof(*c->types));
	for (c->n = 1; c->types && at < end; at += size) {
		const struct btf_type *t = (const void *)at;

		size = (size_t)(end - at) < sizeof(*t) ? 0 : bytes_of(t);
		if (!size || size > (size_t)(end - at) || t->name_off >= c->strings_len || c->n == room)
			return false;
		c->types[c->n++] = t;
	}
	c->copies = calloc(c->n, sizeof(*c->copies));
	return c->types && c->copies && !c->strings[c->strings_len - 1];
}

/* ---- names */

/* Hashes the name of a type. As in libbpf, a name in a BPF object may end with "___" and a word, which do not count. */
static uint32_t hash_of(const char *name, size_t *len)
{
	uint32_t h = 2166136261u;

	for (*len = 0; name[*len] && strncmp(name + *len, "___", 3); ++*len)
		h = (h ^ (uint8_t)name[*len]) * 16777619u;
	return (h ^ h >> 15) % (NAMES_MAX * 2);
}

static void learn_names(struct copier *c)
{
	unsigned i, at;
	size_t len;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		for (at = hash_of(wanted[i], &len); c->buckets[at];)
			at = (at + 1) % sizeof(c->buckets);
		c->buckets[at] = (uint8_t)(i + 1);
	}
}

static bool is_wanted(const struct copier *c, const char *name)
{
	size_t len, its;
	unsigned at = hash_of(name, &len);

	for (; c->buckets[at]; at = (at + 1) % sizeof(c->buckets)) {
		hash_of(wanted[c->buckets[at] - 1], &its);
		if (its == len && !memcmp(wanted[c->buckets[at] - 1], name, len))
			return true;
	}
	return false;
}

/* ---- copying */

static const char *kernel_types_name_of(const struct copier *c, const struct btf_type *t)
{
	return c->strings + t->name_off;
}

static int kernel_types_copy(struct copier *c, uint32_t id, unsigned depth);

/* Copies a struct or union. Its members' types come first, because its members must follow it at once. */
static int copy_struct(struct copier *c, const struct btf_type *t, unsigned depth)
{
	const struct btf_member *m = btf_members(t);
	const unsigned n = btf_vlen(t);
	unsigned i;
	int id, err;

	for (i = 0; i < n; i++) {
		id = kernel_types_copy(c, m[i].type, depth);
		if (id < 0 || m[i].name_off >= c->strings_len)
			return id < 0 ? id : -EINVAL;
	}
	id = btf_is_struct(t) ? btf__add_struct(c->to, kernel_types_name_of(c, t), t->size)
			      : btf__add_union(c->to, kernel_types_name_of(c, t), t->size);
	for (i = 0; id > 0 && i < n; i++) {
		err = btf__add_field(c->to, c->strings + m[i].name_off, kernel_types_copy(c, m[i].type, depth),
				     btf_member_bit_offset(t, i), btf_member_bitfield_size(t, i));
		if (err)
			return err;
	}
	return id;
}

static int copy_enum(struct copier *c, const struct btf_type *t)
{
	const bool wide = btf_kind(t) == BTF_KIND_ENUM64;
	const unsigned n = btf_vlen(t);
	unsigned i;
	int id = wide ? btf__add_enum64(c->to, kernel_types_name_of(c, t), t->size, btf_kflag(t))
		      : btf__add_enum(c->to, kernel_types_name_of(c, t), t->size);
	int err = id < 0 ? id : 0;

	for (i = 0; !err && i < n; i++) {
		const struct btf_enum64 *w = &btf_enum64(t)[i];
		const struct btf_enum *e = &btf_enum(t)[i];

		if ((wide ? w->name_off : e->name_off) >= c->strings_len)
			return -EINVAL;
		err = wide ? btf__add_enum64_value(c->to, c->strings + w->name_off, btf_enum64_value(w))
			   : btf__add_enum_value(c->to, c->strings + e->name_off, e->val);
	}
	return err ? err : id;
}

static int copy_array(struct copier *c, const struct btf_type *t, unsigned depth)
{
	const struct btf_array *a = btf_array(t);
	const int index = kernel_types_copy(c, a->index_type, depth), elem = kernel_types_copy(c, a->type, depth);

	return index < 0 || elem < 0 ? -EINVAL : btf__add_array(c->to, index, elem, a->nelems);
}

static int copy_type(struct copier *c, const struct btf_type *t, unsigned depth)
{
	int id;

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(c->to, kernel_types_name_of(c, t), t->size, btf_int_encoding(t));
	case BTF_KIND_FLOAT:
		return btf__add_float(c->to, kernel_types_name_of(c, t), t->size);
	case BTF_KIND_PTR: /* no program asks what a pointer points to */
		return btf__add_ptr(c->to, 0);
	case BTF_KIND_ARRAY:
		return copy_array(c, t, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_struct(c, t, depth);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return copy_enum(c, t);
	case BTF_KIND_TYPEDEF:
		id = kernel_types_copy(c, t->type, depth);
		return id < 0 ? id : btf__add_typedef(c->to, kernel_types_name_of(c, t), id);
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return kernel_types_copy(c, t->type, depth);
	default:
		return 0; /* void: a function */
	}
}

/* Returns the id of the copy, 0 for void, or -errno. */
static int kernel_types_copy(struct copier *c, uint32_t id, unsigned depth)
{
	int to;

	if (!id)
		return 0;
	if (id >= c->n || depth > DEPTH_MAX)
		return -EINVAL;
	if (c->copies[id])
		return c->copies[id];
	to = copy_type(c, c->types[id], depth + 1);
	if (to > 0)
		c->copies[id] = to;
	return to;
}

static bool has_name(const struct btf_type *t)
{
	const unsigned kind = btf_kind(t);

	return t->name_off && (kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM ||
			       kind == BTF_KIND_ENUM64 || kind == BTF_KIND_TYPEDEF);
}

static int copy_wanted(struct copier *c)
{
	uint32_t i;
	int err = 0;

	c->to = btf__new_empty();
	if (!c->to)
		return -errno;
	learn_names(c);
	for (i = 1; i < c->n && err >= 0; i++)
		if (has_name(c->types[i]) && is_wanted(c, kernel_types_name_of(c, c->types[i])))
			err = kernel_types_copy(c, i, 0);
	return err < 0 ? err : 0;
}

/* ---- files */

/* Maps the kernel's BTF, or reads it where the kernel cannot map it (before 6.16). NULL: there is none. */
static char *open_source(size_t *bytes, bool *mapped)
{
	int fd = open(SOURCE, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data = NULL;
	size_t got = 0;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	*bytes = fstat(fd, &st) || st.st_size < 0 ? 0 : (size_t)st.st_size;
	data = *bytes ? mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	*mapped = data != MAP_FAILED;
	if (!*mapped) {
		data = *bytes ? malloc(*bytes) : NULL;
		while (data && got < *bytes && (n = read(fd, data + got, *bytes - got)) > 0)
			got += (size_t)n;
		*bytes = got;
	}
	close(fd);
	return data;
}

/* Writes the copy to a file in memory, which stays open until the process ends. */
static int write_copy(const struct btf *to)
{
	uint32_t bytes;
	const void *data = btf__raw_data(to, &bytes);
	int fd = data ? memfd_create("mxbpf-types", MFD_CLOEXEC) : -1;

	if (fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static char path[32];

static void kernel_types_make(void)
{
	struct copier c = {.n = 0};
	size_t bytes;
	bool mapped;
	char *data = open_source(&bytes, &mapped);
	int fd = -1;

	if (data && index_types(&c, data, bytes) && !copy_wanted(&c))
		fd = write_copy(c.to);
	if (fd >= 0)
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	btf__free(c.to);
	free(c.types);
	free(c.copies);
	if (data && mapped)
		munmap(data, bytes);
	else
		free(data);
}

const char *kernel_types_path(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, kernel_types_make);
	return *path ? path : NULL;
}
