/* SPDX-License-Identifier: Apache-2.0 */
/* A model that a test feeds with records, and the findings that it gives. */
#ifndef FINDINGS_MODEL_H
#define FINDINGS_MODEL_H

#include "feature/findings/findings.h"
#include "mxbpf_name.h"
#include "unit.h"

#define MS  1000000ull
#define PID 100

static struct mdl *model;
static struct mdl_session session; /* the test says how long its window is */
static struct findings told;	   /* what found() has found in the model */

/* Begins a model without records. */
static inline void new_model(void)
{
	mdl_free(model);
	model = mdl_new();
}

static inline void feed(const void *rec)
{
	CHECK(!mdl_fold_all(model, rec, ((const struct mxbpf_rec *)rec)->size));
}

static inline void name(uint64_t id, enum mxbpf_name_kind kind, const char *text)
{
	char rec[2048] = {0};
	struct mxbpf_name *n = (void *)rec;

	n->len = (uint32_t)strlen(text);
	n->h = (struct mxbpf_rec){
		.kind = MXBPF_NAME, .size = (uint16_t)(sizeof(*n) + (n->len + 7) / 8 * 8), .tgid = PID};
	n->id = id;
	n->kind = (uint8_t)kind;
	memcpy(n->text, text, n->len);
	feed(rec);
}

/* The keys of the findings, joined by blanks. Owned by this function until its next call. */
static inline const char *found(void)
{
	static char keys[256];
	unsigned i;

	findings_fini(&told);
	CHECK(!findings_make(model, &session, &told));
	keys[0] = '\0';
	for (i = 0; i < told.n; i++) {
		strcat(keys, i ? " " : "");
		strcat(keys, told.list[i].rule->key);
	}
	return keys;
}

static inline bool is_evidence(const char *text)
{
	const struct buf *b = &told.list[0].evidence;

	return told.n && b->len == strlen(text) && !memcmp(b->len ? b->data : "", text, b->len);
}

static inline bool has(const struct buf *b, const char *text)
{
	return b->len && memmem(b->data, b->len, text, strlen(text));
}

#endif
