// SPDX-License-Identifier: Apache-2.0
#include "symbols/ended.h"

#include "base/buf.h"
#include "target/target.h"

/* Notes the key if the process has ended. It is removed later, because hash_del() moves entries. */
static int note_ended(const struct hash_entry *e, const struct sym_owner *o, struct buf *ended)
{
	const struct tgt *t = e->val ? o->target((void *)(uintptr_t)e->val) : NULL;

	return t && !tgt_gone(t) ? 0 : buf_put(ended, &e->a, sizeof(e->a));
}

void sym_forget_ended(struct hash *processes, const struct sym_owner *o)
{
	const struct hash_entry *e;
	struct buf ended = {0};
	size_t pos = 0, i;
	uint64_t val;

	if (processes->len < SYM_PROCESSES_KEPT)
		return;
	while ((e = hash_next(processes, &pos)))
		if (note_ended(e, o, &ended)) /* without memory the rest stays */
			break;
	for (i = 0; i < buf_count(&ended, uint64_t); i++)
		if (hash_del(processes, *buf_at(&ended, uint64_t, i), 0, &val) && val)
			o->drop((void *)(uintptr_t)val);
	buf_fini(&ended);
}
