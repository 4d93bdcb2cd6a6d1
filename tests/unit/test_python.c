// SPDX-License-Identifier: Apache-2.0
/* Tests the line tables of Python's code objects, and the refusal of a process without an interpreter. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/priv.h"
#include "python_lines.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint32_t said(size_t row, uint32_t instr)
{
	unsigned i = 0;

	while (python_lines[row].lines[i + 1].from > python_lines[row].lines[i].from &&
	       python_lines[row].lines[i + 1].from <= instr)
		i++;
	return python_lines[row].lines[i].line;
}

/* Returns the number of instructions for which line() differs from the interpreter. */
static unsigned wrong_lines(size_t row)
{
	const struct py_layout *l = py_layout_of(python_lines[row].minor);
	const uint8_t *table = (const uint8_t *)python_lines[row].table;
	unsigned wrong = 0;
	uint32_t instr;

	for (instr = 0; instr < python_lines[row].end; instr += 2)
		wrong += l->line(table, python_lines[row].bytes, python_lines[row].first, instr) != said(row, instr);
	return wrong;
}

/* A damaged table must not be read beyond its end; the sanitizer notices such a read. */
static void read_damaged(py_line_fn line)
{
	uint8_t *table;
	unsigned seed, n, i;

	for (seed = 0; seed < 20000; seed++) {
		n = seed % 40;
		table = malloc(n ? n : 1);
		for (i = 0; table && i < n; i++)
			table[i] = (uint8_t)((seed * 2654435761u + i * 40503u) >> 13);
		if (table)
			line(table, n, 1, seed % 512);
		free(table);
	}
}

int main(void)
{
	unsigned minor;
	struct err e = {0};
	struct tgt *t;
	struct py *p;
	size_t i;

	TEST("each instruction has the line that its interpreter reports, for all three forms of line tables")
	{
		for (i = 0; i < COUNT(python_lines); i++) {
			if (wrong_lines(i))
				printf("# %s: %u instructions\n", python_lines[i].of, wrong_lines(i));
			CHECK(!wrong_lines(i));
		}
	}
	TEST("a damaged table is not read beyond its end")
	{
		read_damaged(py_line_lnotab);
		read_damaged(py_line_ranges);
		read_damaged(py_line_location);
	}
	TEST("an empty table gives no line but that of the function")
	{
		CHECK(py_line_lnotab(NULL, 0, 7, 0) == 7);
		CHECK(!py_line_ranges(NULL, 0, 7, 0));
		CHECK(!py_line_location(NULL, 0, 7, 0));
	}
	TEST("CPython 3.8 to 3.13 are known, and other versions are not")
	{
		for (minor = 8; minor <= 13; minor++)
			CHECK(py_layout_of(minor) && py_layout_of(minor)->minor == minor);
		CHECK(!py_layout_of(7) && !py_layout_of(14) && !py_layout_of(0));
	}
	TEST("each object that BPF reads at once fits its buffer with all fields that BPF uses")
	{
		for (minor = 8; minor <= 13; minor++) {
			const struct mxbpf_python *w = &py_layout_of(minor)->walk;

			CHECK(w->state_thread + 8 <= MXBPF_PY_STATE_BYTES &&
			      w->state_frame + 8 <= MXBPF_PY_STATE_BYTES);
			CHECK(w->frame_bytes <= MXBPF_PY_FRAME_BYTES && w->frame_back + 8 <= w->frame_bytes &&
			      w->frame_code + 8 <= w->frame_bytes);
			CHECK(w->frame_instr + 8 <= w->frame_bytes);
			CHECK(w->frame_owner == MXBPF_PY_NONE || w->frame_owner < w->frame_bytes);
			for (i = 0; i < MXBPF_PY_PRINT_WORDS; i++)
				CHECK(w->code_print[i] + 8 <= MXBPF_PY_CODE_BYTES);
			CHECK(w->text + MXBPF_PY_PRINT_TEXT <= MXBPF_PY_TEXT_BYTES);
		}
	}
	TEST("a process without Python is refused with a reason")
	{
		CHECK(!tgt_open(getpid(), &t, &e));
		CHECK(py_open(t, &p, &e) == -2 && !p && e.cls == ERR_TARGET && strstr(e.why, "no Python"));
		tgt_close(t);
	}
	UNIT_MAIN_END;
}
