// SPDX-License-Identifier: Apache-2.0
/*
 * Reads .eh_frame_hdr, .eh_frame and .gcc_except_table: DWARF frame instructions and the call-site tables of the C++
 * ABI.
 */
#include "elf/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/cursor.h"
#include "elf/image.h"
#include "elf/names.h"

#define FDES_MAX       (4u << 20) /* the largest library seen has 0.6 million */
#define RECORD_MAX     (1u << 20) /* limit of one entry or one call-site table, in bytes */
#define AUG_MAX	       16
#define PE_OMIT	       0xff
#define PE_UDATA4      0x03
#define PE_DATA_SDATA4 0x3b
#define PE_FORM	       0x0f
#define STATES_MAX     16

/* A row of the file. Both values are relative to the header. */
struct elf_hdr_row {
	int32_t start, fde;
};

static int bad(struct err *e, int err, const char *what)
{
	if (err == -ENODATA || err == -ENOENT)
		err = -EBADMSG;
	return err_set(e, ERR_TARGET, err, "cannot read the unwind tables: %s: %s", what, strerror(-err));
}

static int read_rows(struct elf *f, struct err *e)
{
	struct {
		uint8_t version, ptr_enc, count_enc, table_enc;
		int32_t eh_frame;
		uint32_t n;
	} h;
	struct elf_hdr_row *rows;
	int err;

	if (!f->eh_hdr_va)
		return err_set(e, ERR_TARGET, -ENOENT, "the file has no unwind table");
	err = elf_read_va(f, f->eh_hdr_va, &h, sizeof(h));
	if (err)
		return bad(e, err, ".eh_frame_hdr");
	if (h.version != 1 || h.count_enc != PE_UDATA4 || h.table_enc != PE_DATA_SDATA4)
		return bad(e, -ENOTSUP, "another form of .eh_frame_hdr");
	if (!h.n || h.n > FDES_MAX || !elf_load_at(f, f->eh_hdr_va + sizeof(h), (uint64_t)h.n * sizeof(*rows)))
		return bad(e, -EBADMSG, ".eh_frame_hdr");
	rows = malloc(h.n * sizeof(*rows));
	if (!rows)
		return bad(e, -ENOMEM, ".eh_frame_hdr");
	err = elf_read_va(f, f->eh_hdr_va + sizeof(h), rows, h.n * sizeof(*rows));
	if (err) {
		free(rows);
		return bad(e, err, ".eh_frame_hdr");
	}
	f->eh_rows = rows;
	f->neh_rows = h.n;
	return 0;
}

/*
 * Returns the last row that starts at or before va, or NULL. In an unsorted table, the entry found will not cover va.
 */
static const struct elf_hdr_row *row_at(const struct elf *f, uint64_t va)
{
	uint32_t lo = 0, hi = f->eh_rows ? f->neh_rows : 0;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->eh_hdr_va + (uint64_t)(int64_t)f->eh_rows[mid].start <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &f->eh_rows[lo - 1] : NULL;
}

/* Moves the cursor past the length field and sets its end. Returns false if this is no such record. */
static bool begin_record(struct cursor *c, const struct elf *f, uint64_t va)
{
	uint64_t n;

	cursor_init(c, f, va, va + 4 < va ? va : va + 4);
	n = cursor_u(c, 4);
	/* Length 0 ends the section. All ones mean 64-bit DWARF, which no compiler writes here. */
	if (c->err || n < 4 || n > RECORD_MAX)
		return false;
	c->end_va = c->va + n;
	c->held = 0;
	return c->end_va > c->va;
}

struct augmentation {
	bool sized;
	uint8_t ptr_enc, lsda_enc;
};

static void read_augmentation(struct cursor *c, const char *aug, struct augmentation *a, struct elf_fde *fde)
{
	uint64_t n = cursor_uleb(c), end = c->va + n;

	fde->personality = strchr(aug, 'P');
	for (aug++; *aug && !c->err; aug++) {
		if (*aug == 'R')
			a->ptr_enc = (uint8_t)cursor_u(c, 1);
		else if (*aug == 'L')
			a->lsda_enc = (uint8_t)cursor_u(c, 1);
		else if (*aug == 'P') /* the value of the personality routine is not needed, only its size */
			cursor_ptr(c, cursor_u(c, 1) & PE_FORM);
		else if (*aug == 'S')
			fde->signal_frame = true;
		else
			break;
	}
	if (end < c->va || end > c->end_va)
		c->err = -EBADMSG;
	else
		c->va = end;
}

static int read_cie(const struct elf *f, uint64_t va, struct elf_fde *fde, struct augmentation *a)
{
	char aug[AUG_MAX];
	unsigned n, version;
	struct cursor c;

	if (!begin_record(&c, f, va) || cursor_u(&c, 4))
		return -EBADMSG;
	version = (unsigned)cursor_u(&c, 1);
	for (n = 0; n < AUG_MAX; n++) {
		aug[n] = (char)cursor_u(&c, 1);
		if (!aug[n])
			break;
	}
	if ((version != 1 && version != 3) || n == AUG_MAX || (aug[0] && aug[0] != 'z'))
		return c.err ? c.err : -ENOTSUP;
	fde->code_align = cursor_uleb(&c);
	fde->data_align = cursor_sleb(&c);
	if (version == 1)
		cursor_skip(&c, 1); /* the return address register */
	else
		cursor_uleb(&c);
	a->sized = aug[0] == 'z';
	if (a->sized)
		read_augmentation(&c, aug, a, fde);
	fde->cie_insns_va = c.va;
	fde->cie_end_va = c.end_va;
	return c.err;
}

static int read_fde(const struct elf *f, uint64_t va, struct elf_fde *fde)
{
	struct augmentation a = {.lsda_enc = PE_OMIT};
	uint64_t cie_off, aug_end;
	struct cursor c;
	int err;

	if (!begin_record(&c, f, va))
		return c.err ? c.err : -EBADMSG;
	cie_off = cursor_u(&c, 4);
	if (!cie_off)
		return -EBADMSG;
	err = read_cie(f, c.va - 4 - cie_off, fde, &a);
	if (err)
		return err;
	fde->ptr_enc = a.ptr_enc;
	fde->start_va = cursor_ptr(&c, a.ptr_enc);
	fde->end_va = fde->start_va + cursor_ptr(&c, a.ptr_enc & PE_FORM);
	if (a.sized) {
		aug_end = cursor_uleb(&c);
		aug_end += c.va;
		if (a.lsda_enc != PE_OMIT)
			fde->lsda_va = cursor_ptr(&c, a.lsda_enc);
		if (aug_end < c.va || aug_end > c.end_va)
			return -EBADMSG;
		c.va = aug_end;
	}
	fde->insns_va = c.va;
	fde->insns_end_va = c.end_va;
	return c.err;
}

int elf_fde_find(struct elf *f, uint64_t va, struct elf_fde *out, struct err *e)
{
	const struct elf_hdr_row *row;
	int err = f->eh_rows ? 0 : read_rows(f, e);

	memset(out, 0, sizeof(*out));
	if (err)
		return err;
	row = row_at(f, va);
	if (!row)
		return err_set(e, ERR_TARGET, -ENOENT, "no unwind entry for 0x%llx", (unsigned long long)va);
	err = read_fde(f, f->eh_hdr_va + (uint64_t)(int64_t)row->fde, out);
	if (err)
		return bad(e, err, ".eh_frame");
	if (va < out->start_va || va >= out->end_va)
		return err_set(e, ERR_TARGET, -ENOENT, "no unwind entry for 0x%llx", (unsigned long long)va);
	return 0;
}

bool elf_has_exceptions(struct elf *f)
{
	static const char *const imports[] = {"__cxa_throw", "__cxa_rethrow", "_Unwind_RaiseException",
					      "_Unwind_Resume", "_Unwind_ForcedUnwind"};
	struct elf_fde fde;
	uint64_t slot;
	uint32_t i;

	for (i = 0; i < sizeof(imports) / sizeof(imports[0]); i++)
		if (elf_import_slots(f, imports[i], &slot, 1))
			return true;
	if (!f->eh_rows && read_rows(f, NULL))
		return true;
	for (i = 0; i < f->neh_rows; i++) {
		memset(&fde, 0, sizeof(fde));
		if (read_fde(f, f->eh_hdr_va + (uint64_t)(int64_t)f->eh_rows[i].fde, &fde) || fde.personality)
			return true;
	}
	return false;
}

/* ---- position of the frame */

struct cfa_rule {
	uint64_t reg; /* DWARF register number or AT_RBP; NO_REG: another expression */
	int64_t off;
};

#define NO_REG	UINT64_MAX
#define AT_RBP	(UINT64_MAX - 1) /* the word at rbp + off */
#define REG_RBP 6
#define REG_RSP 7

#define DW_BREG_RBP 0x76
#define DW_DEREF    0x06

struct cfa_machine {
	const struct elf_fde *fde;
	struct cursor c;
	uint64_t va;
	struct cfa_rule rule;
	struct cfa_rule saved[STATES_MAX];
	unsigned nsaved;
	struct buf *out;
};

static int put_rule(struct cfa_machine *m)
{
	struct elf_cfa cfa = {.va = m->va, .off = (int32_t)m->rule.off};

	if (m->rule.reg == REG_RSP)
		cfa.base = ELF_CFA_RSP;
	else if (m->rule.reg == REG_RBP)
		cfa.base = ELF_CFA_RBP;
	else if (m->rule.reg == AT_RBP)
		cfa.base = ELF_CFA_AT_RBP;
	if (m->rule.off != cfa.off)
		cfa.base = ELF_CFA_OTHER;
	return buf_put(m->out, &cfa, sizeof(cfa));
}

static int advance(struct cfa_machine *m, uint64_t units)
{
	int err = m->out ? put_rule(m) : -EBADMSG;

	m->va += units * m->fde->code_align;
	return err;
}

static void skip_block(struct cursor *c)
{
	cursor_skip(c, cursor_uleb(c));
}

/* Recognizes the one expression that compilers write: rbp + off, dereferenced. */
static void expression(struct cfa_machine *m)
{
	struct cursor *c = &m->c;
	uint64_t n = cursor_uleb(c), end_va = c->va + n;

	m->rule = (struct cfa_rule){NO_REG, 0};
	if (n >= 3 && cursor_u(c, 1) == DW_BREG_RBP) {
		m->rule.off = cursor_sleb(c);
		if (c->va + 1 == end_va && cursor_u(c, 1) == DW_DEREF)
			m->rule.reg = AT_RBP;
	}
	if (c->va > end_va)
		c->err = c->err ? c->err : -EBADMSG;
	else
		cursor_skip(c, end_va - c->va);
}

static int save_rule(struct cfa_machine *m, bool restore)
{
	if (restore) {
		if (!m->nsaved)
			return -EBADMSG;
		m->rule = m->saved[--m->nsaved];
		return 0;
	}
	if (m->nsaved == STATES_MAX)
		return -EBADMSG;
	m->saved[m->nsaved++] = m->rule;
	return 0;
}

/* Runs instructions that change the frame address or the position in the code. */
static int run_cfa_insn(struct cfa_machine *m, uint8_t op)
{
	struct cursor *c = &m->c;

	switch (op) {
	case 0x01: { /* set_loc */
		uint64_t to = cursor_ptr(c, m->fde->ptr_enc);

		return to < m->va ? -EBADMSG : advance(m, 0) ?: (m->va = to, 0);
	}
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		return advance(m, cursor_u(c, 1u << (op - 2)));
	case 0x0a: /* remember_state, restore_state */
	case 0x0b:
		return save_rule(m, op == 0x0b);
	case 0x0c: /* def_cfa */
		m->rule.reg = cursor_uleb(c);
		m->rule.off = (int64_t)cursor_uleb(c);
		return 0;
	case 0x0d: /* def_cfa_register */
		m->rule.reg = cursor_uleb(c);
		return 0;
	case 0x0e: /* def_cfa_offset */
		m->rule.off = (int64_t)cursor_uleb(c);
		return 0;
	case 0x0f: /* def_cfa_expression */
		expression(m);
		return 0;
	default:
		return -ENOTSUP;
	}
}

/* Skips instructions that say where registers are saved. */
static int skip_reg_insn(struct cursor *c, uint8_t op)
{
	static const struct {
		uint8_t op, ulebs, block;
	} forms[] = {
		{0x00, 0, 0}, {0x05, 2, 0}, {0x06, 1, 0}, {0x07, 1, 0}, {0x08, 1, 0}, {0x09, 2, 0},
		{0x10, 1, 1}, {0x11, 2, 0}, {0x14, 2, 0}, {0x15, 2, 0}, {0x16, 1, 1}, {0x2e, 1, 0},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		if (forms[i].op != op)
			continue;
		for (unsigned n = 0; n < forms[i].ulebs; n++)
			cursor_uleb(c);
		if (forms[i].block)
			skip_block(c);
		return 0;
	}
	return -EBADMSG;
}

static int run_insns(struct cfa_machine *m, uint64_t va, uint64_t end_va)
{
	int err = 0;

	cursor_init(&m->c, m->c.f, va, end_va);
	while (!err && !m->c.err && m->c.va < end_va) {
		uint8_t op = (uint8_t)cursor_u(&m->c, 1);

		if (op >> 6 == 1) /* advance_loc */
			err = advance(m, op & 0x3f);
		else if (op >> 6 == 2) /* offset */
			cursor_uleb(&m->c);
		else if (op >> 6 == 0) /* restore (3) has no operand */
			err = run_cfa_insn(m, op);
		if (err == -ENOTSUP)
			err = skip_reg_insn(&m->c, op);
	}
	return err ? err : m->c.err;
}

int elf_fde_cfas(const struct elf *f, const struct elf_fde *fde, struct buf *cfas, struct err *e)
{
	struct cfa_machine m = {.fde = fde, .c.f = f, .va = fde->start_va, .rule = {NO_REG, 0}};
	int err = run_insns(&m, fde->cie_insns_va, fde->cie_end_va);

	m.out = cfas;
	if (!err)
		err = run_insns(&m, fde->insns_va, fde->insns_end_va);
	if (!err)
		err = put_rule(&m);
	return err ? bad(e, err, "frame instructions") : 0;
}

/* ---- landing pads */

int elf_fde_call_sites(const struct elf *f, const struct elf_fde *fde, struct buf *sites, struct err *e)
{
	uint64_t pads_va = fde->start_va, last = 0, n;
	struct cursor c;
	uint8_t enc;

	if (!fde->lsda_va)
		return 0;
	cursor_init(&c, f, fde->lsda_va, fde->lsda_va + RECORD_MAX < fde->lsda_va ? 0 : fde->lsda_va + RECORD_MAX);
	enc = (uint8_t)cursor_u(&c, 1);
	if (enc != PE_OMIT)
		pads_va = cursor_ptr(&c, enc);
	enc = (uint8_t)cursor_u(&c, 1);
	if (enc != PE_OMIT)
		cursor_uleb(&c); /* table of caught types */
	enc = (uint8_t)cursor_u(&c, 1);
	n = cursor_uleb(&c);
	if (c.err || n > c.end_va - c.va)
		return bad(e, c.err ? c.err : -EBADMSG, ".gcc_except_table");
	for (c.end_va = c.va + n; !c.err && c.va < c.end_va;) {
		uint64_t start = cursor_ptr(&c, enc & PE_FORM), bytes = cursor_ptr(&c, enc & PE_FORM);
		uint64_t pad = cursor_ptr(&c, enc & PE_FORM);
		struct elf_call_site s = {fde->start_va + start, fde->start_va + start + bytes,
					  pad ? pads_va + pad : 0};

		cursor_uleb(&c); /* action */
		/* The unwinder stops at the first site after the address, so it would not find sites out of order. */
		if (start < last || start + bytes < start)
			return bad(e, -EBADMSG, ".gcc_except_table");
		last = start + bytes;
		if (!c.err && buf_put(sites, &s, sizeof(s)))
			return bad(e, -ENOMEM, ".gcc_except_table");
	}
	return c.err ? bad(e, c.err, ".gcc_except_table") : 0;
}
