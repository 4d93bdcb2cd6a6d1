// SPDX-License-Identifier: Apache-2.0
/*
 * The injection library of NVTX that a launched command gets. Each library of the program that uses NVTX loads it at
 * its first call, and gives it a table of functions to fill. The functions here only work out the name of a range and
 * call one of the functions mxbpf_nvtx_*, which do nothing: mxbpf probes them (user/adapter/nvtx.c). The library
 * allocates nothing, takes no lock, and keeps no state of a thread.
 *
 * The structures are NVTX's contract with tools, which has been the same since version 2
 * (nvtx3/nvtxDetail/nvtxTypes.h).
 */
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#define EXPORT	     __attribute__((visibility("default"), used))
#define TEXT_MAX     256
#define DOMAINS_MAX  64
#define STRINGS_MAX  (256u << 10)
#define NOT_TRACKED  (-2) /* NVTX_NO_PUSH_POP_TRACKING: a range's level is not known */
#define MODULE_CORE  1
#define MODULE_CORE2 5
#define CALLBACKS    1

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};
_Static_assert(offsetof(struct attributes, message) == 40, "as in the header");

enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

struct callbacks {
	size_t bytes;
	int (*table)(int module, void (***functions[])(void), unsigned *n);
};

struct domain {
	char name[64];
};

static struct domain domains[DOMAINS_MAX];
static unsigned ndomains;
/* Texts that end with NUL. A handle of a registered string is the address of its text. */
static char strings[STRINGS_MAX];
static unsigned nstring_bytes;
static uint64_t last_id;

/* ---- what mxbpf probes: each function begins with an instruction that the kernel emulates */

#define PROBED(name, args, ...)                                                                                        \
	EXPORT __attribute__((noinline)) void name args;                                                               \
	void name args                                                                                                 \
	{                                                                                                              \
		__asm__ volatile("nop # " #name : : __VA_ARGS__ : "memory");                                           \
	}

PROBED(mxbpf_nvtx_push, (const char *name), "r"(name))
PROBED(mxbpf_nvtx_pop, (void), "i"(0))
PROBED(mxbpf_nvtx_start, (const char *name, uint64_t id), "r"(name), "r"(id))
PROBED(mxbpf_nvtx_end, (uint64_t id), "r"(id))
PROBED(mxbpf_nvtx_mark, (const char *domain, const char *name, const char *scope), "r"(domain), "r"(name), "r"(scope))

/* ---- texts */

static size_t add(char *to, size_t n, const char *text)
{
	while (*text && n + 1 < TEXT_MAX)
		to[n++] = *text++;
	to[n] = '\0';
	return n;
}

static size_t add_wide(char *to, size_t n, const wchar_t *text)
{
	for (; *text && n + 5 < TEXT_MAX; text++) {
		const uint32_t c = (uint32_t)*text;

		if (c < 0x80) {
			to[n++] = (char)c;
		} else if (c < 0x800) {
			to[n++] = (char)(0xc0 | c >> 6);
			to[n++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			to[n++] = (char)(0xe0 | c >> 12);
			to[n++] = (char)(0x80 | (c >> 6 & 0x3f));
			to[n++] = (char)(0x80 | (c & 0x3f));
		} else {
			to[n++] = (char)(0xf0 | (c >> 18 & 7));
			to[n++] = (char)(0x80 | (c >> 12 & 0x3f));
			to[n++] = (char)(0x80 | (c >> 6 & 0x3f));
			to[n++] = (char)(0x80 | (c & 0x3f));
		}
	}
	to[n] = '\0';
	return n;
}

static const char *wide(char *to, const wchar_t *text)
{
	add_wide(to, 0, text ? text : L"");
	return to;
}

/* BPF cannot read a page that nobody has read yet, such as that of a constant. A longer text may lie on two pages. */
static const char *touch(const char *text)
{
	if (!text)
		return "";
	(void)*(const volatile char *)text;
	return text;
}

/* Returns the text of an event. It lies in `to` if it has to be made. */
static const char *message(char *to, const struct attributes *a)
{
	if (!a || a->size < sizeof(*a) || !a->message)
		return "";
	if (a->message_type == MESSAGE_WIDE)
		return wide(to, a->message);
	return a->message_type == MESSAGE_ASCII || a->message_type == MESSAGE_REGISTERED ? touch(a->message) : "";
}

/* The name of a range in a domain is "domain: text". */
static const char *in_domain(char *to, const struct domain *d, const struct attributes *a)
{
	char room[TEXT_MAX];
	const char *text = message(room, a);

	if (!d)
		return text == room ? strcpy(to, room) : text;
	add(to, add(to, add(to, 0, d->name), ": "), text);
	return to;
}

static const char *keep(const char *text)
{
	const size_t bytes = strlen(text) + 1;
	const unsigned at =
		bytes < TEXT_MAX ? __atomic_fetch_add(&nstring_bytes, bytes, __ATOMIC_RELAXED) : STRINGS_MAX;

	if (at > STRINGS_MAX - TEXT_MAX) {
		if (bytes < TEXT_MAX)
			__atomic_fetch_sub(&nstring_bytes, bytes, __ATOMIC_RELAXED);
		return "(string not kept)";
	}
	return memcpy(strings + at, text, bytes);
}

/* ---- NVTX's functions */

static void mark(const struct domain *d, const char *text)
{
	mxbpf_nvtx_mark(d ? d->name : NULL, text, "thread");
}

static void mark_ex(const struct attributes *a)
{
	char room[TEXT_MAX];

	mark(NULL, message(room, a));
}

static void mark_a(const char *text)
{
	mark(NULL, touch(text));
}

static void mark_w(const wchar_t *text)
{
	char room[TEXT_MAX];

	mark(NULL, wide(room, text));
}

static uint64_t start(const char *name)
{
	const uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);

	mxbpf_nvtx_start(name, id);
	return id;
}

static uint64_t start_ex(const struct attributes *a)
{
	char room[TEXT_MAX];

	return start(message(room, a));
}

static uint64_t start_a(const char *text)
{
	return start(touch(text));
}

static uint64_t start_w(const wchar_t *text)
{
	char room[TEXT_MAX];

	return start(wide(room, text));
}

static void end(uint64_t id)
{
	mxbpf_nvtx_end(id);
}

static int push_ex(const struct attributes *a)
{
	char room[TEXT_MAX];

	mxbpf_nvtx_push(message(room, a));
	return NOT_TRACKED;
}

static int push_a(const char *text)
{
	mxbpf_nvtx_push(touch(text));
	return NOT_TRACKED;
}

static int push_w(const wchar_t *text)
{
	char room[TEXT_MAX];

	mxbpf_nvtx_push(wide(room, text));
	return NOT_TRACKED;
}

static int pop(void)
{
	mxbpf_nvtx_pop();
	return NOT_TRACKED;
}

static void domain_mark(const struct domain *d, const struct attributes *a)
{
	char room[TEXT_MAX];

	mark(d, message(room, a));
}

static uint64_t domain_start(const struct domain *d, const struct attributes *a)
{
	char room[TEXT_MAX];

	return start(in_domain(room, d, a));
}

static void domain_end(const struct domain *d, uint64_t id)
{
	(void)d;
	mxbpf_nvtx_end(id);
}

static int domain_push(const struct domain *d, const struct attributes *a)
{
	char room[TEXT_MAX];

	mxbpf_nvtx_push(in_domain(room, d, a));
	return NOT_TRACKED;
}

static int domain_pop(const struct domain *d)
{
	(void)d;
	mxbpf_nvtx_pop();
	return NOT_TRACKED;
}

static const char *register_a(const struct domain *d, const char *text)
{
	(void)d;
	return keep(text ? text : "");
}

static const char *register_w(const struct domain *d, const wchar_t *text)
{
	char room[TEXT_MAX];

	(void)d;
	return keep(wide(room, text));
}

/* Ranges in a domain that has no room look like those outside of domains. */
static struct domain *create_a(const char *name)
{
	const unsigned i = __atomic_fetch_add(&ndomains, 1, __ATOMIC_RELAXED);

	if (i >= DOMAINS_MAX) {
		__atomic_fetch_sub(&ndomains, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	if (name)
		memcpy(domains[i].name, name, strnlen(name, sizeof(domains[i].name) - 1));
	return &domains[i];
}

static struct domain *create_w(const wchar_t *name)
{
	char room[TEXT_MAX];

	return create_a(wide(room, name));
}

/* ---- the tables */

struct entry {
	unsigned id;
	bool pushes; /* pushes or pops: mxbpf probes the functions of libraries that export them */
	void (*function)(void);
};

#define FUNCTION(f) (void (*)(void))(f)

static const struct entry core[] = {
	{1, false, FUNCTION(mark_ex)},	{2, false, FUNCTION(mark_a)},  {3, false, FUNCTION(mark_w)},
	{4, false, FUNCTION(start_ex)}, {5, false, FUNCTION(start_a)}, {6, false, FUNCTION(start_w)},
	{7, false, FUNCTION(end)},	{8, true, FUNCTION(push_ex)},  {9, true, FUNCTION(push_a)},
	{10, true, FUNCTION(push_w)},	{11, true, FUNCTION(pop)},
};

static const struct entry core2[] = {
	{1, false, FUNCTION(domain_mark)}, {2, false, FUNCTION(domain_start)}, {3, false, FUNCTION(domain_end)},
	{4, true, FUNCTION(domain_push)},  {5, true, FUNCTION(domain_pop)},    {10, false, FUNCTION(register_a)},
	{11, false, FUNCTION(register_w)}, {12, false, FUNCTION(create_a)},    {13, false, FUNCTION(create_w)},
};

struct search {
	uint64_t at;
	bool exports;
};

/* The library of an address exports NVTX's functions if its name is one of NVIDIA's two libraries. */
static int on_object(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	struct search *s = ctx;
	int i;

	(void)bytes;
	for (i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    s->at - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			break;
	if (i == info->dlpi_phnum)
		return 0;
	s->exports = slash && (!strncmp(slash + 1, "libnvT", 6) || !strncmp(slash + 1, "libnvt", 6));
	return 1;
}

static void fill(const struct callbacks *c, int module, const struct entry *entries, size_t n, bool exports)
{
	void (***functions)(void) = NULL;
	unsigned size = 0;
	size_t i;

	if (!c->table(module, (void *)&functions, &size) || !functions)
		return;
	for (i = 0; i < n; i++)
		if (entries[i].id < size && functions[entries[i].id] && !(exports && entries[i].pushes))
			*functions[entries[i].id] = entries[i].function;
}

/* A library calls this at its first use of NVTX. get: returns its tables by number. 1: a tool is there. */
EXPORT int InitializeInjectionNvtx2(const void *(*get)(uint32_t table));
int InitializeInjectionNvtx2(const void *(*get)(uint32_t table))
{
	const struct callbacks *c = get ? get(CALLBACKS) : NULL;
	struct search s = {.at = (uint64_t)(uintptr_t)get};

	if (!c || c->bytes < sizeof(*c) || !c->table)
		return 0;
	dl_iterate_phdr(on_object, &s);
	fill(c, MODULE_CORE, core, sizeof(core) / sizeof(core[0]), s.exports);
	fill(c, MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]), s.exports);
	return 1;
}
