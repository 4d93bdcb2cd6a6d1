/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the CSV output: hostile names, and the heading. */
#include "printed.h"

#include "mxbpf_memory.h"
#include "mxbpf_step.h"

#define MAX UINT64_MAX

static bool with_runtime; /* also puts records of memory attribution and iterations into the model */

/* Returns what the view prints of one row with that name. The caller frees it. */
static char *render(const char *name, size_t len, bool continued)
{
	struct mdl_session s = {.mem_title = "Device Storage", .start_unix_ns = 5, .duration_ns = 7};
	char room[sizeof(struct mxbpf_name) + 64] __attribute__((aligned(8))) = {0};
	struct mxbpf_name *n = (struct mxbpf_name *)room;
	struct mxbpf_agg a = {.h = {.kind = MXBPF_AGG, .size = sizeof(a)},
			      .name_id = 1,
			      .count = MAX,
			      .total_ns = MAX,
			      .cls = MXBPF_CLASS_OPERATOR};
	struct mxbpf_agg_mem bytes = {.h = {.kind = MXBPF_AGG_MEM, .size = sizeof(bytes)},
				      .name_id = 1,
				      .alloc_bytes = -5,
				      .self_alloc_bytes = INT64_MIN,
				      .cls = MXBPF_CLASS_OPERATOR};
	struct mdl_probe refused = {"operator.start", "op", "", "refused", "no symbol", NULL};
	struct mxbpf_tally unwound = {.h = {MXBPF_TALLY, sizeof(unwound)},
				      .value = 8,
				      .id = MXBPF_TALLY_UNWOUND,
				      .cls = MXBPF_CLASS_OPERATOR};
	struct mxbpf_mem_time held = {.h = {MXBPF_MEM_TIME, sizeof(held)}, .missed = 9, .device = MXBPF_DEVICE(1, 0)};
	struct mxbpf_iteration late = {.h = {MXBPF_ITERATION, sizeof(late), 0, 5}, .nr = 12, .told = MXBPF_STEP_UPDATE};
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct view_input in = {.session = &s, .model = m};
	const struct view_opts opts = {.continued = continued};

	s.class_title[MXBPF_CLASS_OPERATOR] = "a \"table\", quoted";
	s.held = with_runtime;
	s.loss.dropped = 3;
	s.unfollowed = 4;
	s.unlabelled = 6;
	s.late_refused = 6;
	s.probes = &refused;
	s.nprobes = 1;
	n->h = (struct mxbpf_rec){.kind = MXBPF_NAME, .size = sizeof(room)};
	n->id = 1;
	n->len = (uint32_t)len;
	memcpy(n->text, name, len);
	CHECK(!mdl_feed(m, n, sizeof(room)) && !mdl_feed(m, &a, sizeof(a)) && !mdl_feed(m, &bytes, sizeof(bytes)));
	CHECK(!mdl_feed(m, &unwound, sizeof(unwound)));
	CHECK(!with_runtime || (!mdl_feed(m, &held, sizeof(held)) && !mdl_feed(m, &late, sizeof(late))));
	return printed(view_find("csv"), &in, &opts);
}

int main(void)
{
	char *text;

	TEST("a name cannot leave its cell: quotes are doubled, commas and line feeds are quoted, control characters "
	     "are escaped")
	{
		text = render("a,\"b\"\r\n\t\x1b[2J\"", 13, false);
		CHECK(strstr(text, "\n\"a \"\"table\"\", quoted\",\"a,\"\"b\"\"\\x0d\n\t\\x1b[2J\"\"\",,"));
		free(text);
	}
	TEST("integers are exact")
	{
		text = render("op", 2, false);
		CHECK(strstr(text, "\"op\",,18446744073709551615,18446744073709551615,0,0,0,1,"));
		CHECK(strstr(text, ",,,-5,-9223372036854775808,,,,,,5,7,,\n"));
		free(text);
	}
	TEST("losses have rows of their own, and every row has the window")
	{
		text = render("op", 2, false);
		CHECK(strstr(text, "\n\"loss\",\"dropped\",,3,,,,,,,,,,,,,,,,,5,7,,\n"));
		CHECK(strstr(text, "\n\"window\",\"unlabelled\",,6,"));
		CHECK(strstr(text, "\n\"window\",\"unfollowed\",,4,") &&
		      strstr(text, "\n\"window\",\"late_refused\",,6,"));
		CHECK(strstr(text, "\n\"window\",\"unwound\",,8,") &&
		      strstr(text, "\n\"refused\",\"operator.start\",,,"));
		free(text);
	}
	TEST("missed frees and missing iterations have rows of their own")
	{
		with_runtime = true;
		text = render("op", 2, false);
		CHECK(strstr(text, "\n\"held.lost\",\"missed_frees\",\"dev1/0\",9,") &&
		      strstr(text, "\n\"iterations.missing\",\"update\",,12,"));
		free(text);
		with_runtime = false;
	}
	TEST("continued output has no heading")
	{
		text = render("op", 2, false);
		CHECK(!strncmp(text, "table,name,device,count,total_ns,", 33));
		free(text);
		text = render("op", 2, true);
		CHECK(!strncmp(text, "\"a \"\"table", 10));
		free(text);
	}
	UNIT_MAIN_END;
}
