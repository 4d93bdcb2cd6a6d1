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
#include "lib.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#define DOMAINS_MAX    64
#define CATEGORIES_MAX 256
#define NOT_TRACKED    (-2) /* NVTX_NO_PUSH_POP_TRACKING: a range's level is not known */
#define MODULE_CORE    1
#define MODULE_CORE2   5
#define CALLBACKS      1
#define SEQ	       ", seq = "
#define OP_ID	       ", op_id = "

enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

struct callbacks {
	size_t bytes;
	int (*table)(int module, void (***functions[])(void), unsigned *n);
};

/* A category with a name, in a domain or in none. */
struct category {
	const struct domain *domain;
	uint32_t number;
	const char *name; /* NULL: not complete */
};

static struct domain domains[DOMAINS_MAX];
static struct category categories[CATEGORIES_MAX];
static unsigned ndomains, ncategories;
static uint64_t last_id;

/* ---- what mxbpf probes: each function begins with an instruction that the kernel emulates */

#define PROBED(name, args, ...)                                                                                        \
	EXPORT __attribute__((noinline)) void name args;                                                               \
	void name args                                                                                                 \
	{                                                                                                              \
		__asm__ volatile("nop # " #name : : __VA_ARGS__ : "memory");                                           \
	}

/* info: what the range carries, or NULL. Each domain has a stack of pushed ranges of its own. */
PROBED(mxbpf_nvtx_push, (const char *name, const struct mxbpf_range_info *info, const struct domain *d), "r"(name),
       "r"(info), "r"(d))
PROBED(mxbpf_nvtx_pop, (const struct mxbpf_range_info *info, const struct domain *d), "r"(info), "r"(d))
PROBED(mxbpf_nvtx_start, (const char *name, uint64_t id, const struct mxbpf_range_info *info), "r"(name), "r"(id),
       "r"(info))
PROBED(mxbpf_nvtx_end, (uint64_t id, const struct mxbpf_range_info *info), "r"(id), "r"(info))
PROBED(mxbpf_nvtx_mark, (const char *domain, const char *name, const char *scope, const struct mxbpf_range_info *info),
       "r"(domain), "r"(name), "r"(scope), "r"(info))

/* ---- what a range carries */

static const char *category_name(const struct domain *d, uint32_t number)
{
	unsigned i, n = __atomic_load_n(&ncategories, __ATOMIC_ACQUIRE);

	for (i = 0; number && i < n && i < CATEGORIES_MAX; i++)
		if (categories[i].number == number && categories[i].domain == d)
			return __atomic_load_n(&categories[i].name, __ATOMIC_ACQUIRE);
	return NULL;
}

static void set_category(const struct domain *d, uint32_t number, const char *name)
{
	unsigned i;

	if (!number || category_name(d, number))
		return;
	i = __atomic_fetch_add(&ncategories, 1, __ATOMIC_ACQ_REL);
	if (i >= CATEGORIES_MAX) {
		__atomic_fetch_sub(&ncategories, 1, __ATOMIC_RELAXED);
		return;
	}
	categories[i].domain = d;
	categories[i].number = number;
	__atomic_store_n(&categories[i].name, text_keep(name), __ATOMIC_RELEASE);
}

static struct payload *payloads(const struct attributes *a, size_t *n)
{
	*n = a && a->size >= sizeof(*a) && a->payload_type == PAYLOAD_EXTENDED && a->reserved > 0 ? (size_t)a->reserved
												  : 0;
	return *n ? (struct payload *)(uintptr_t)a->payload : NULL;
}

static void read_plain(struct mxbpf_range_data *to, const struct attributes *a)
{
	if (a->payload_type <= MXBPF_RANGE_NONE || a->payload_type > MXBPF_RANGE_FLOAT)
		return;
	to->type = (uint8_t)a->payload_type;
	to->nvalues = 1;
	to->values[0] = a->payload_type == MXBPF_RANGE_I32   ? (uint64_t)(int64_t)(int32_t)a->payload
			: a->payload_type >= MXBPF_RANGE_U32 ? (uint32_t)a->payload
							     : a->payload;
}

static const struct mxbpf_range_info *info_of(struct mxbpf_range_info *to, const struct domain *d,
					      const struct attributes *a, const struct payload *p, size_t n)
{
	size_t n_event;
	const struct payload *of_event = payloads(a, &n_event);

	memset(to, 0, sizeof(*to));
	if (a && a->size >= sizeof(*a)) {
		to->data.category = a->category;
		to->data.color = a->color_type ? a->color : 0;
		read_plain(&to->data, a);
	}
	payload_read(to, d, of_event, n_event);
	payload_read(to, d, p, n);
	to->domain = d && *d->name ? (uint64_t)(uintptr_t)d->name : 0;
	to->category = (uint64_t)(uintptr_t)category_name(d, to->data.category);
	return to;
}

/*
 * The names of emit_nvtx() of PyTorch end with numbers ("aten::mm, seq = 12, op_id = 7, sizes = [[2]]"), so that no two
 * are the same. The name is what stands before them, and the number joins forward and backward. Returns false if the
 * name has none.
 */
static bool cut_seq(char *to, const char *text, struct mxbpf_range_info *info)
{
	const char *end = strstr(text, SEQ), *op = end ? NULL : strstr(text, OP_ID);
	const size_t n = end ? (size_t)(end - text) : op ? (size_t)(op - text) : 0;

	if (!n || n >= TEXT_MAX)
		return false;
	memmove(to, text, n);
	to[n] = '\0';
	memset(info, 0, sizeof(*info));
	if (end) {
		info->data.values[0] = strtoull(end + strlen(SEQ), NULL, 10);
		info->data.nvalues = 1;
		info->data.type = MXBPF_RANGE_SEQ;
	}
	return true;
}

/* ---- names */

/* Returns the text of an event. It lies in `to` if it has to be made. */
static const char *message(char *to, const struct domain *d, const struct attributes *a)
{
	struct payload *p;
	size_t n;

	if (!a || a->size < sizeof(*a))
		return "";
	if (!a->message) {
		p = payloads(a, &n);
		return payload_message(d, p, n);
	}
	if (a->message_type == MESSAGE_WIDE)
		return text_wide(to, a->message);
	return a->message_type == MESSAGE_ASCII || a->message_type == MESSAGE_REGISTERED ? text_touch(a->message) : "";
}

/* The name of a range in a domain is "domain: text". */
static const char *in_domain(char *to, const struct domain *d, const char *text)
{
	char room[TEXT_MAX];

	if (!d)
		return text;
	text_add(room, text_add(room, text_add(room, 0, d->name), ": "), text);
	return strcpy(to, room);
}

/* ---- NVTX's functions */

static void mark(const struct domain *d, const char *text, const struct mxbpf_range_info *info)
{
	mxbpf_nvtx_mark(d ? d->name : NULL, text, "thread", info);
}

static void domain_mark(const struct domain *d, const struct attributes *a)
{
	struct mxbpf_range_info info;
	char room[TEXT_MAX];

	mark(d, message(room, d, a), info_of(&info, d, a, NULL, 0));
}

static void mark_ex(const struct attributes *a)
{
	domain_mark(NULL, a);
}

static void mark_a(const char *text)
{
	mark(NULL, text_touch(text), NULL);
}

static void mark_w(const wchar_t *text)
{
	char room[TEXT_MAX];

	mark(NULL, text_wide(room, text), NULL);
}

static uint64_t nvtx_start(const char *name, const struct mxbpf_range_info *info)
{
	const uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);

	mxbpf_nvtx_start(name, id, info);
	return id;
}

static uint64_t domain_start(const struct domain *d, const struct attributes *a)
{
	struct mxbpf_range_info info;
	char room[TEXT_MAX];

	return nvtx_start(in_domain(room, d, message(room, d, a)), info_of(&info, d, a, NULL, 0));
}

static uint64_t start_ex(const struct attributes *a)
{
	return domain_start(NULL, a);
}

static uint64_t start_a(const char *text)
{
	return nvtx_start(text_touch(text), NULL);
}

static uint64_t start_w(const wchar_t *text)
{
	char room[TEXT_MAX];

	return nvtx_start(text_wide(room, text), NULL);
}

static void end(uint64_t id)
{
	mxbpf_nvtx_end(id, NULL);
}

static void domain_end(const struct domain *d, uint64_t id)
{
	(void)d;
	mxbpf_nvtx_end(id, NULL);
}

static int domain_push(const struct domain *d, const struct attributes *a)
{
	struct mxbpf_range_info info;
	char room[TEXT_MAX];

	mxbpf_nvtx_push(in_domain(room, d, message(room, d, a)), info_of(&info, d, a, NULL, 0), d);
	return NOT_TRACKED;
}

static int push_ex(const struct attributes *a)
{
	return domain_push(NULL, a);
}

static int push_a(const char *text)
{
	struct mxbpf_range_info info;
	char room[TEXT_MAX];

	text = text_touch(text);
	if (cut_seq(room, text, &info))
		mxbpf_nvtx_push(room, &info, NULL);
	else
		mxbpf_nvtx_push(text, NULL, NULL);
	return NOT_TRACKED;
}

static int push_w(const wchar_t *text)
{
	char room[TEXT_MAX];

	mxbpf_nvtx_push(text_wide(room, text), NULL, NULL);
	return NOT_TRACKED;
}

static int domain_pop(const struct domain *d)
{
	mxbpf_nvtx_pop(NULL, d);
	return NOT_TRACKED;
}

static int pop(void)
{
	return domain_pop(NULL);
}

/* ---- ranges of the extension for payloads (payload.c) */

int nvtx_push_payload(const struct domain *d, const struct payload *p, size_t n)
{
	struct mxbpf_range_info info;
	char room[TEXT_MAX];

	mxbpf_nvtx_push(in_domain(room, d, payload_message(d, p, n)), info_of(&info, d, NULL, p, n), d);
	return NOT_TRACKED;
}

int nvtx_pop_payload(const struct domain *d, const struct payload *p, size_t n)
{
	struct mxbpf_range_info info;

	mxbpf_nvtx_pop(info_of(&info, d, NULL, p, n), d);
	return NOT_TRACKED;
}

uint64_t nvtx_start_payload(const struct domain *d, const struct payload *p, size_t n)
{
	struct mxbpf_range_info info;
	char room[TEXT_MAX];

	return nvtx_start(in_domain(room, d, payload_message(d, p, n)), info_of(&info, d, NULL, p, n));
}

void nvtx_end_payload(const struct domain *d, uint64_t id, const struct payload *p, size_t n)
{
	struct mxbpf_range_info info;

	mxbpf_nvtx_end(id, info_of(&info, d, NULL, p, n));
}

void nvtx_mark_payload(const struct domain *d, const struct payload *p, size_t n)
{
	struct mxbpf_range_info info;

	mark(d, payload_message(d, p, n), info_of(&info, d, NULL, p, n));
}

/* ---- what the program registers */

static const char *nvtx_keep(const char *text)
{
	const char *kept = text_keep(text);

	return kept ? kept : "(string not kept)";
}

static const char *register_a(const struct domain *d, const char *text)
{
	(void)d;
	return nvtx_keep(text ? text : "");
}

static const char *register_w(const struct domain *d, const wchar_t *text)
{
	char room[TEXT_MAX];

	(void)d;
	return nvtx_keep(text_wide(room, text));
}

static void domain_category_a(const struct domain *d, uint32_t number, const char *name)
{
	set_category(d, number, name ? name : "");
}

static void domain_category_w(const struct domain *d, uint32_t number, const wchar_t *name)
{
	char room[TEXT_MAX];

	set_category(d, number, text_wide(room, name));
}

static void category_a(uint32_t number, const char *name)
{
	domain_category_a(NULL, number, name);
}

static void category_w(uint32_t number, const wchar_t *name)
{
	domain_category_w(NULL, number, name);
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

	return create_a(text_wide(room, name));
}

/* ---- the tables */

struct entry {
	unsigned id;
	bool pushes; /* pushes or pops: mxbpf probes the functions of libraries that export them */
	void (*function)(void);
};

#define FUNCTION(f) (void (*)(void))(f)

static const struct entry core[] = {
	{1, false, FUNCTION(mark_ex)},	   {2, false, FUNCTION(mark_a)},  {3, false, FUNCTION(mark_w)},
	{4, false, FUNCTION(start_ex)},	   {5, false, FUNCTION(start_a)}, {6, false, FUNCTION(start_w)},
	{7, false, FUNCTION(end)},	   {8, true, FUNCTION(push_ex)},  {9, true, FUNCTION(push_a)},
	{10, true, FUNCTION(push_w)},	   {11, true, FUNCTION(pop)},	  {12, false, FUNCTION(category_a)},
	{13, false, FUNCTION(category_w)},
};

static const struct entry core2[] = {
	{1, false, FUNCTION(domain_mark)},	 {2, false, FUNCTION(domain_start)},
	{3, false, FUNCTION(domain_end)},	 {4, true, FUNCTION(domain_push)},
	{5, true, FUNCTION(domain_pop)},	 {10, false, FUNCTION(register_a)},
	{11, false, FUNCTION(register_w)},	 {12, false, FUNCTION(create_a)},
	{13, false, FUNCTION(create_w)},	 {8, false, FUNCTION(domain_category_a)},
	{9, false, FUNCTION(domain_category_w)},
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

static void nvtx_fill(const struct callbacks *c, int module, const struct entry *entries, size_t n, bool exports)
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
	nvtx_fill(c, MODULE_CORE, core, sizeof(core) / sizeof(core[0]), s.exports);
	nvtx_fill(c, MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]), s.exports);
	return 1;
}

/*
 * mxbpf calls this in a process that runs already. A library looks into such a variable for a tool when it calls NVTX
 * for the first time (nvtx3/nvtxDetail/nvtxInit.h, nvtxExtInit.h). A tool that is there stays.
 */
EXPORT void mxbpf_nvtx_offer(uint64_t variable);
void mxbpf_nvtx_offer(uint64_t variable)
{
	void **at = (void **)(uintptr_t)(variable & ~1ull), *none = NULL;
	void *tool = variable & 1 ? (void *)InitializeInjectionNvtxExtension : (void *)InitializeInjectionNvtx2;

	__atomic_compare_exchange_n(at, &none, tool, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
