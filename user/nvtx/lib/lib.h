/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of NVTX's injection library share (nvtx.c says what the library is). */
#ifndef LIB_H
#define LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include "mxbpf_range.h"

#define EXPORT	 __attribute__((visibility("default"), used))
#define TEXT_MAX 256

/* NVTX's contract with tools (nvtx3/nvtxDetail/nvtxTypes.h). */
struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved; /* with PAYLOAD_EXTENDED: number of payloads */
	uint64_t payload; /* with PAYLOAD_EXTENDED: address of struct payload */
	int32_t message_type;
	const void *message;
};
_Static_assert(offsetof(struct attributes, message) == 40, "as in the header");
#define PAYLOAD_EXTENDED ((int32_t)0xdfbd0009u)

/* A payload with a schema (nvtx3/nvToolsExtPayload.h). */
struct payload {
	uint64_t schema;
	size_t bytes; /* SIZE_MAX: those of the schema */
	const void *data;
};

struct domain {
	char name[64];
};

/* ---- text.c: no function fails; a text that does not fit is cut */

/* Append to the n bytes of a text of TEXT_MAX bytes. Return the new length. */
size_t text_add(char *to, size_t n, const char *text);
size_t text_add_wide(char *to, size_t n, const wchar_t *text);
/* Returns `to` with a text of wide characters, which may be NULL. */
const char *text_wide(char *to, const wchar_t *text);
/* Returns the text, or "" if it is NULL, after reading its first byte. */
const char *text_touch(const char *text);
/* Returns a copy that stays, or NULL if there is no room. */
const char *text_keep(const char *text);
const char *text_keep_bytes(const char *text, size_t bytes);

/* ---- payload.c: numbers of payloads, by their schemas */

/* A library calls this at its first use of an extension. 1: a tool is there. */
struct module;
EXPORT int InitializeInjectionNvtxExtension(struct module *m);
/* Adds what payloads have to what a range carries. */
void payload_read(struct mxbpf_range_info *to, const struct domain *d, const struct payload *p, size_t n);
/* Returns the text in a payload that is the event's message, or "". */
const char *payload_message(const struct domain *d, const struct payload *p, size_t n);

/* ---- nvtx.c: ranges of the extension for payloads */

int nvtx_push_payload(const struct domain *d, const struct payload *p, size_t n);
int nvtx_pop_payload(const struct domain *d, const struct payload *p, size_t n);
uint64_t nvtx_start_payload(const struct domain *d, const struct payload *p, size_t n);
void nvtx_end_payload(const struct domain *d, uint64_t id, const struct payload *p, size_t n);
void nvtx_mark_payload(const struct domain *d, const struct payload *p, size_t n);

#endif
