// SPDX-License-Identifier: Apache-2.0
/* Reads the structure offsets of a row in an unknown build from the code that the row probes. */
#include <errno.h>

#include "insn/fields.h"
#include "plan/priv.h"

/*
 * A handle is address, size, location. The offset at which the function reads the location shows the size of the two
 * words before it.
 */
#define WORD 8

/*
 * Reads the offsets in the block that this function gets. The function passes the name of the block's operator to the
 * built-in profiler, and the device.
 */
static int by_block(struct elf *elf, const struct elf_sym *func, struct mxbpf_row *row, struct err *e)
{
	struct fields_block f;
	int err = fields_of_block(elf, func, &f, e);

	if (err)
		return err;
	row->name.off[0] = row->link.off[0] = f.object_off;
	row->name.off[1] = f.name_off;
	row->device.off[0] = f.location_off;
	return 0;
}

static bool compares(const struct fields_handle *f, int32_t off)
{
	unsigned i = 0;

	while (i < f->ncompared && f->compared_off[i] != off)
		i++;
	return i < f->ncompared;
}

/*
 * Checks that the row's offsets are right: the location must follow two words, and only these may be compared. The code
 * does not show where the names behind it are.
 */
static int check_handle(const struct fields_handle *f, int32_t begin, struct mxbpf_row *row, struct err *e)
{
	const struct mxbpf_fetch none = {0};

	unsigned known = compares(f, 0) + compares(f, WORD);

	if (f->location_off != 2 * WORD || known != f->ncompared || row->size.off[0] != begin + WORD ||
	    row->device.off[0] != begin + f->location_off)
		return err_set(e, ERR_TARGET, -EILSEQ, "its code reads other fields of an allocation");
	if (row->guard.base != MXBPF_BASE_NONE && !compares(f, row->guard.off[0] - begin))
		return err_set(e, ERR_TARGET, -EILSEQ, "its code does not show how it marks an empty allocation");
	row->name_type = MXBPF_NAMED_NOT;
	row->name = row->alt_name = none;
	return 0;
}

static int by_handle(struct elf *elf, const struct elf_sym *func, struct mxbpf_row *row, struct err *e)
{
	struct fields_handle f;
	int err = fields_of_handle(elf, func, &f, e);

	return err ? err : check_handle(&f, 0, row, e);
}

static int by_handle_copy(struct elf *elf, const struct elf_sym *func, struct mxbpf_row *row, struct err *e)
{
	struct fields_handle f;
	int err = fields_of_handle_copy(elf, func, &f, e);

	return err ? err : check_handle(&f, WORD, row, e); /* the handle lies behind the return address */
}

static int (*const calibrations[])(struct elf *elf, const struct elf_sym *func, struct mxbpf_row *row,
				   struct err *e) = {
	[ADP_SHOWN_BLOCK] = by_block,
	[ADP_SHOWN_HANDLE] = by_handle,
	[ADP_SHOWN_HANDLE_COPY] = by_handle_copy,
};

int plan_calibrate(struct plan *plan, struct plan_probe *p, struct elf *elf, const struct elf_sym *func)
{
	struct err why = {0};

	if (!p->row->shown)
		return plan_refuse(p, "structure offsets are not verified for this build of %s", p->lib->path);
	if (calibrations[p->row->shown](elf, func, &plan->rows[p - plan->probes], &why))
		return plan_refuse(p, "structure offsets are not verified for this build of %s, and %s", p->lib->path,
				   why.why);
	p->calibrated = true;
	return 0;
}
