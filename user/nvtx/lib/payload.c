// SPDX-License-Identifier: Apache-2.0
/*
 * Payloads with schemas: NVTX's extension for payloads, with which NCCL says communicator, bytes and operation of a
 * collective. The program registers a schema, which names the members of a struct, and passes the address of such a
 * struct with an event. The numbers of the struct are read here. The structures are those of nvtx3/nvToolsExtPayload.h
 * and nvtx3/nvtxDetail/nvtxExtTypes.h.
 */
#include "lib.h"

#include <string.h>

#define SCHEMAS_MAX   256
#define ENUMS_MAX     64
#define PAYLOADS_MAX  16	   /* of an event that are looked at */
#define TEXT_BYTES    1024	   /* of a schema's text */
#define MEMBERS_MAX   64	   /* of a schema that are looked at */
#define WORDS_MAX     64	   /* of an enumeration that are kept */
#define DYNAMIC	      (1ull << 32) /* numbers that the tool gives begin here */
#define HAS_ENTRIES   (1 << 4)
#define HAS_NUMBER    (1 << 5)
#define HAS_ALIGN     (1 << 7)
#define HAS_ID	      (1 << 8)
#define ENUM_ENTRIES  (1 << 2)
#define ENUM_NUMBER   (1 << 3)
#define ENUM_SIZE     (1 << 4)
#define ENUM_ID	      (1 << 5)
#define IS_POINTER    (1 << 1)
#define IS_ARRAY      (7 << 4)
#define IS_FIXED      (1 << 4)
#define IS_MESSAGE    (1 << 10)
#define TYPE_CSTRING  75
#define TYPE_UTF8     76
#define TYPE_STRING   80 /* a registered string */
#define TYPE_CATEGORY 68
#define TYPE_COLOR    69

struct entry {
	uint64_t flags, type;
	const char *name, *description;
	uint64_t length, offset;
	const void *semantics, *reserved;
};

struct schema_attributes {
	uint64_t fields;
	const char *name;
	uint64_t type, flags;
	const struct entry *entries;
	size_t nentries, bytes, align;
	uint64_t id;
};

struct word {
	const char *name;
	uint64_t value;
	int8_t is_flag;
};

struct enum_attributes {
	uint64_t fields;
	const char *name;
	const struct word *words;
	size_t nwords, bytes;
	uint64_t id;
};

struct segment {
	size_t id, n;
	intptr_t *functions;
};

struct module {
	uint16_t version, bytes, id, compatible;
	size_t nsegments;
	struct segment *segments;
};

/* A member of a struct: a number, or the message of the event. */
struct member {
	uint32_t offset;
	uint8_t bytes;
	char letter; /* of mxbpf_range.h, or c category, C color, s text, r registered string */
};

struct schema {
	uint64_t id;
	const struct domain *domain;
	const char *text;	     /* NULL: not complete, or it names no number */
	size_t bytes;		     /* that its members need */
	unsigned nmembers, left_out; /* left_out: numbers beyond MXBPF_RANGE_VALUES */
	struct member members[MXBPF_RANGE_VALUES + 3];
};

struct enumeration {
	uint64_t id;
	const struct domain *domain;
	const char *text; /* "\tNUMBER=NAME" for each word; NULL: not complete */
	uint8_t bytes;
};

static struct schema schemas[SCHEMAS_MAX];
static struct enumeration enums[ENUMS_MAX];
static unsigned nschemas, nenums;

/* ---- types */

static const struct {
	char letter;
	uint8_t bytes;
} types[] = {
	/* clang-format off */
	[1] = {'i', 1}, {'u', 1}, {'i', 2}, {'u', 2}, {'i', 4}, {'u', 4}, {'i', 8}, {'u', 8}, {'i', 8}, {'u', 8},
	[11] = {'i', 1}, {'u', 1}, {'i', 2}, {'u', 2}, {'i', 4}, {'u', 4}, {'i', 8}, {'u', 8},
	[19] = {'f', 4}, {'f', 8}, [22] = {'u', 8}, {'x', 8}, [32] = {'u', 1}, [43] = {'f', 4}, {'f', 8},
	[TYPE_CATEGORY] = {'c', 4}, [TYPE_COLOR] = {'C', 4}, {'u', 8}, [73] = {'u', 4}, {'u', 8},
	[TYPE_CSTRING] = {'s', 8}, {'s', 8}, [TYPE_STRING] = {'r', 8},
	/* clang-format on */
};

static const struct enumeration *enum_of(const struct domain *d, uint64_t id)
{
	unsigned i, n = __atomic_load_n(&nenums, __ATOMIC_ACQUIRE);

	for (i = 0; i < n && i < ENUMS_MAX; i++)
		if (enums[i].id == id && enums[i].domain == d && __atomic_load_n(&enums[i].text, __ATOMIC_ACQUIRE))
			return &enums[i];
	return NULL;
}

static const struct schema *schema_of(const struct domain *d, uint64_t id)
{
	unsigned i, n = __atomic_load_n(&nschemas, __ATOMIC_ACQUIRE);

	for (i = 0; i < n && i < SCHEMAS_MAX; i++)
		if (schemas[i].id == id && schemas[i].domain == d &&
		    __atomic_load_n(&schemas[i].text, __ATOMIC_ACQUIRE))
			return &schemas[i];
	return NULL;
}

/* Sets letter and size of a member. Returns false if the size of its type is not known. */
static bool type_of(const struct domain *d, const struct entry *e, struct member *m, const struct enumeration **words)
{
	*words = NULL;
	m->letter = 0;
	m->bytes = 0;
	if (e->flags & IS_POINTER) {
		m->bytes = 8;
		return true;
	}
	if (e->type < sizeof(types) / sizeof(types[0])) {
		m->letter = types[e->type].letter;
		m->bytes = types[e->type].bytes;
	} else {
		*words = enum_of(d, e->type);
		m->letter = 'e';
		m->bytes = *words ? (*words)->bytes : 0;
	}
	return m->bytes;
}

/* ---- schemas */

static size_t payload_add(char *text, size_t n, const char *more)
{
	while (*more && n + 1 < TEXT_BYTES)
		text[n++] = *more++;
	return n;
}

/* Adds a name of the program, which may not have what separates names here. */
static size_t add_name(char *text, size_t n, const char *name)
{
	for (; *name && n + 1 < TEXT_BYTES; name++)
		text[n++] = *name == '\n' || *name == '\t' ? ' ' : *name;
	return n;
}

static size_t add_number(char *text, size_t n, uint64_t v)
{
	char digits[24], *p = digits + sizeof(digits) - 1;

	*p = '\0';
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	return payload_add(text, n, p);
}

/* Adds a member, and its line if it is a number. Returns the new length of the text. */
static size_t add_member(struct schema *s, const struct member *m, const struct entry *e,
			 const struct enumeration *words, char *text, size_t n, unsigned *nvalues)
{
	const bool number = m->letter && strchr("uifxe", m->letter);
	const bool message = (m->letter == 's' || m->letter == 'r') && e->flags & IS_MESSAGE;
	const char line[] = {m->letter, ' ', '\0'};

	s->left_out += number && *nvalues == MXBPF_RANGE_VALUES;
	if (!m->letter || (number && *nvalues == MXBPF_RANGE_VALUES) ||
	    (!number && !message && m->letter != 'c' && m->letter != 'C') ||
	    s->nmembers == sizeof(s->members) / sizeof(s->members[0]))
		return n;
	s->members[s->nmembers++] = *m;
	if (m->offset + m->bytes > s->bytes)
		s->bytes = m->offset + m->bytes;
	if (!number)
		return n;
	n = payload_add(text, n, (*nvalues)++ ? "\n" : "");
	n = payload_add(text, n, line);
	n = add_name(text, n, e->name && *e->name ? e->name : "value");
	return words ? payload_add(text, n, words->text) : n;
}

static void payload_describe(struct schema *s, const struct schema_attributes *a)
{
	const struct enumeration *words;
	unsigned nvalues = 0;
	char text[TEXT_BYTES];
	size_t i, n = 0;
	uint64_t end = 0, align;

	for (i = 0; i < a->nentries && i < MEMBERS_MAX; i++) {
		const struct entry *e = &a->entries[i];
		const uint64_t items = (e->flags & IS_ARRAY) == IS_FIXED ? e->length : 1;
		struct member m;

		if (!e->type || (!type_of(s->domain, e, &m, &words) && !e->offset))
			break; /* nobody knows where the next member is */
		align = a->fields & HAS_ALIGN && a->align && a->align < m.bytes ? a->align : m.bytes;
		end = e->offset || !align ? e->offset : (end + align - 1) / align * align;
		if (end > UINT32_MAX || items > UINT32_MAX || ((e->flags & IS_ARRAY) > IS_FIXED && !m.bytes))
			break;
		m.offset = (uint32_t)end;
		end += m.bytes * items;
		if (end > UINT32_MAX)
			break;
		if (!(e->flags & IS_ARRAY) && m.bytes)
			n = add_member(s, &m, e, words, text, n, &nvalues);
	}
	__atomic_store_n(&s->text, text_keep_bytes(text, n), __ATOMIC_RELEASE);
}

static uint64_t schema_register(const struct domain *d, const struct schema_attributes *a)
{
	unsigned i;

	if (!a || !(a->fields & HAS_ENTRIES) || !(a->fields & HAS_NUMBER) || !a->entries)
		return 0;
	if (a->fields & HAS_ID && schema_of(d, a->id))
		return a->id;
	i = __atomic_fetch_add(&nschemas, 1, __ATOMIC_ACQ_REL);
	if (i >= SCHEMAS_MAX) {
		__atomic_fetch_sub(&nschemas, 1, __ATOMIC_RELAXED);
		return 0;
	}
	schemas[i].id = a->fields & HAS_ID ? a->id : DYNAMIC + i;
	schemas[i].domain = d;
	payload_describe(&schemas[i], a);
	return schemas[i].id;
}

static uint64_t enum_register(const struct domain *d, const struct enum_attributes *a)
{
	char text[TEXT_BYTES];
	size_t k, n = 0;
	unsigned i;

	if (!a || !(a->fields & ENUM_ENTRIES) || !(a->fields & ENUM_NUMBER) || !a->words)
		return 0;
	i = __atomic_fetch_add(&nenums, 1, __ATOMIC_ACQ_REL);
	if (i >= ENUMS_MAX) {
		__atomic_fetch_sub(&nenums, 1, __ATOMIC_RELAXED);
		return 0;
	}
	for (k = 0; k < a->nwords && k < WORDS_MAX && n + TEXT_MAX < TEXT_BYTES && a->words[k].name; k++) {
		n = payload_add(text, n, "\t");
		n = add_number(text, n, a->words[k].value);
		n = payload_add(text, n, "=");
		n = add_name(text, n, a->words[k].name);
	}
	enums[i].bytes = a->fields & ENUM_SIZE && a->bytes && a->bytes <= 8 ? (uint8_t)a->bytes : 4;
	enums[i].id = a->fields & ENUM_ID ? a->id : DYNAMIC + SCHEMAS_MAX + i;
	enums[i].domain = d;
	__atomic_store_n(&enums[i].text, text_keep_bytes(text, n), __ATOMIC_RELEASE);
	return enums[i].id;
}

/* ---- payloads */

static uint64_t number_at(const void *at, char letter, unsigned bytes)
{
	uint64_t v = 0;
	double d;
	float f;

	memcpy(&v, at, bytes);
	if (letter == 'f' && bytes == sizeof(f)) {
		memcpy(&f, at, sizeof(f));
		d = f;
		memcpy(&v, &d, sizeof(v));
	}
	if (letter == 'i' && bytes < 8)
		v = (uint64_t)((int64_t)(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
	return v;
}

/* A payload that is one number: its schema is the number of a type. */
static void read_number(struct mxbpf_range_info *to, const struct payload *p)
{
	const char letter = p->schema < sizeof(types) / sizeof(types[0]) ? types[p->schema].letter : 0;
	const unsigned bytes = letter ? types[p->schema].bytes : 0;

	if (!letter || !strchr("uifx", letter) || p->bytes < bytes)
		return;
	to->data.values[0] = number_at(p->data, letter, bytes);
	to->data.nvalues = 1;
	to->data.type = letter == 'i' ? MXBPF_RANGE_I64 : letter == 'f' ? MXBPF_RANGE_DOUBLE : MXBPF_RANGE_U64;
}

static void read_struct(struct mxbpf_range_info *to, const struct schema *s, const char *data)
{
	unsigned i;

	to->data.nvalues = 0;
	to->data.type = MXBPF_RANGE_NONE;
	for (i = 0; i < s->nmembers; i++) {
		const struct member *m = &s->members[i];

		if (m->letter == 'c')
			to->data.category = (uint32_t)number_at(data + m->offset, 'u', 4);
		else if (m->letter == 'C')
			to->data.color = (uint32_t)number_at(data + m->offset, 'u', 4);
		else if (m->letter != 's' && m->letter != 'r')
			to->data.values[to->data.nvalues++] = number_at(data + m->offset, m->letter, m->bytes);
	}
	to->data.left_out = s->left_out < UINT8_MAX ? (uint8_t)s->left_out : UINT8_MAX;
	to->schema = to->data.nvalues ? (uint64_t)(uintptr_t)s->text : 0;
}

void payload_read(struct mxbpf_range_info *to, const struct domain *d, const struct payload *p, size_t n)
{
	const struct schema *s;
	size_t i;

	for (i = 0; p && i < n && i < PAYLOADS_MAX; i++) {
		s = p[i].data ? schema_of(d, p[i].schema) : NULL;
		if (s && p[i].bytes >= s->bytes) { /* SIZE_MAX is larger */
			read_struct(to, s, p[i].data);
			return;
		}
		if (p[i].data && !s && !to->data.nvalues)
			read_number(to, &p[i]);
	}
}

const char *payload_message(const struct domain *d, const struct payload *p, size_t n)
{
	const struct schema *s;
	const char *text;
	unsigned i;
	size_t k;

	for (k = 0; p && k < n && k < PAYLOADS_MAX; k++) {
		s = p[k].data ? schema_of(d, p[k].schema) : NULL;
		for (i = 0; s && p[k].bytes >= s->bytes && i < s->nmembers; i++) {
			if (s->members[i].letter != 's' && s->members[i].letter != 'r')
				continue;
			memcpy(&text, (const char *)p[k].data + s->members[i].offset, sizeof(text));
			return text_touch(text);
		}
	}
	return "";
}

/* ---- the extension */

static uint8_t is_enabled(const struct domain *d)
{
	(void)d;
	return 1;
}

#define MODULE	    2
#define COMPATIBLE  1 /* upper byte of the number that says which versions are compatible */
#define FUNCTION(f) (intptr_t)(f)

/* By NVTX's numbers of them. */
static const intptr_t functions[] = {
	FUNCTION(schema_register),   FUNCTION(enum_register),	 FUNCTION(nvtx_mark_payload),
	FUNCTION(nvtx_push_payload), FUNCTION(nvtx_pop_payload), FUNCTION(nvtx_start_payload),
	FUNCTION(nvtx_end_payload),  FUNCTION(is_enabled),
};

int InitializeInjectionNvtxExtension(struct module *m)
{
	size_t i;

	if (!m || m->bytes < sizeof(*m) || m->id != MODULE || m->compatible >> 8 != COMPATIBLE || !m->nsegments ||
	    !m->segments->functions)
		return 0;
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]) && i < m->segments->n; i++)
		m->segments->functions[i] = functions[i];
	return 1;
}
