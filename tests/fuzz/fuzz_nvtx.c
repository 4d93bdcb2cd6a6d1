// SPDX-License-Identifier: Apache-2.0
/*
 * A program registers schemas and enumerations with NVTX and gives payloads and texts, as the injection library reads
 * them inside the program. What the program promises holds: texts end, and a payload has the bytes that it names.
 */
#include <stdint.h>
#include <stdlib.h>

#define entry nvtx_entry
#include "../../user/nvtx/lib/nvtx.c"
#undef entry
#undef FUNCTION
#include "../../user/nvtx/lib/payload.c"
#include "../../user/nvtx/lib/text.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ENTRIES_MAX 80
#define EVENTS_MAX  16

static const uint8_t *input, *input_end;

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

/* Numbers that matter are small or at an end. */
static uint64_t number(void)
{
	const uint8_t b = byte();
	uint64_t v = b;

	if (b >= 0xf0 && input_end - input >= 8) {
		memcpy(&v, input, sizeof(v));
		input += sizeof(v);
	}
	return b == 0xef ? UINT32_MAX - 3 : b == 0xee ? DYNAMIC : v;
}

/* A text whose end is the end of its memory; the caller frees it. NULL is legal, too. */
static char *text(void)
{
	const size_t n = byte(), have = (size_t)(input_end - input), some = n < have ? n : have;
	char *to = n == 0xff ? NULL : malloc(n * 2 + 1);

	if (!to)
		return NULL;
	memset(to, 'x', n * 2);
	memcpy(to, input, some);
	input += some;
	to[n * 2] = '\0';
	return to;
}

static void register_enum(const struct domain *d)
{
	struct word words[8];
	struct enum_attributes a = {
		.fields = ENUM_ENTRIES | ENUM_NUMBER | byte(), .words = words, .nwords = byte() % 9};
	size_t i;

	for (i = 0; i < 8; i++)
		words[i] = (struct word){i < a.nwords ? text() : NULL, number(), 0};
	a.bytes = byte();
	a.id = number();
	enum_register(d, &a);
	for (i = 0; i < 8; i++)
		free((void *)(uintptr_t)words[i].name);
}

static void register_schema(const struct domain *d)
{
	struct schema_attributes a = {.fields = HAS_ENTRIES | HAS_NUMBER | (uint64_t)(byte() & 3) << 7};
	struct entry *entries;
	size_t i;

	a.nentries = byte() % ENTRIES_MAX;
	a.align = byte();
	a.id = number();
	entries = calloc(a.nentries + 1, sizeof(*entries));
	if (!entries)
		abort();
	for (i = 0; i < a.nentries; i++)
		entries[i] = (struct entry){.flags = byte() | (uint64_t)(byte() & 7) << 8,
					    .type = number(),
					    .name = byte() & 1 ? text() : NULL,
					    .length = number(),
					    .offset = number()};
	a.entries = entries;
	schema_register(d, &a);
	for (i = 0; i < a.nentries; i++)
		free((void *)(uintptr_t)entries[i].name);
	free(entries);
}

/* The words of a payload that may be addresses of texts are those of one. A program that lies about them ends itself.
 */
static bool has_addresses(const struct schema *s)
{
	unsigned i;

	for (i = 0; s && i < s->nmembers; i++)
		if ((s->members[i].letter == 's' || s->members[i].letter == 'r') && s->members[i].offset % 8)
			return false;
	return true;
}

static void give_payload(const struct domain *d)
{
	static const char message_text[] = "a message";
	const uint64_t address = (uintptr_t)message_text;
	struct payload p = {.schema = number(), .bytes = number() % 4096};
	char *at = malloc(p.bytes ? p.bytes : 1);
	size_t i;

	if (!at)
		abort();
	for (i = 0; i < p.bytes; i++)
		at[i] = ((const char *)&address)[i % 8];
	p.data = at;
	if (has_addresses(schema_of(d, p.schema)))
		nvtx_mark_payload(d, &p, 1);
	if (!schema_of(d, p.schema) || !schema_of(d, p.schema)->nmembers)
		nvtx_push_payload(d, &p, 1);
	free(at);
}

static void give_texts(const struct domain *d)
{
	char *t = text();
	const size_t n = t ? strlen(t) / sizeof(wchar_t) : 0;
	wchar_t *wide = calloc(n + 1, sizeof(*wide));
	struct attributes a = {.size = sizeof(a), .message_type = byte() & 3, .category = byte() & 3};

	if (!wide)
		abort();
	memcpy(wide, t ? t : "", n * sizeof(*wide));
	a.message = a.message_type == MESSAGE_WIDE ? (const void *)wide : t;
	a.payload_type = byte() & 7;
	a.payload = number();
	domain_push(d, &a);
	push_a(t);
	push_w(wide);
	register_a(d, t);
	domain_category_a(d, a.category, t);
	domain_category_w(d, byte(), wide);
	free(wide);
	free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const events[])(const struct domain *d) = {register_enum, register_schema, give_payload,
								 give_texts};
	struct domain *d;
	unsigned i;
	char *name;

	input = data;
	input_end = data + size;
	nschemas = nenums = ndomains = ncategories = nkept = 0;
	memset(schemas, 0, sizeof(schemas));
	memset(enums, 0, sizeof(enums));
	memset(domains, 0, sizeof(domains));
	memset(categories, 0, sizeof(categories));
	name = text();
	d = create_a(name);
	free(name);
	for (i = 0; i < EVENTS_MAX && input < input_end; i++)
		events[byte() & 3](byte() & 1 ? d : NULL);
	return 0;
}
