// SPDX-License-Identifier: Apache-2.0
/* The kernel's account of calls, as columns. */
#include "view/priv.h"
#include "view/sheet.h"

struct view_account view_account_of(const struct mdl_row *r)
{
	return (struct view_account){mdl_on_cpu_ns(r), r->account};
}

static bool has_faults(const struct view *s)
{
	return !s->in->session->no_faults;
}

#define ROW struct view_account
const struct tbl_column view_account_columns[] = {
	{"on_cpu_ns", NULL, NULL, TBL_NS, AT(on_cpu_ns)},
	{"runq_ns", NULL, NULL, TBL_NS, AT(sum.runq_ns),
	 .help = "time in which the thread could run, but waited for a CPU"},
	{"blocked_ns", NULL, NULL, TBL_NS, AT(sum.blocked_ns),
	 .help = "time in which the thread slept, or waited for a lock, a disk or a page"},
	{"elsewhere_ns", NULL, NULL, TBL_NS, AT(sum.elsewhere_ns),
	 .help = "remaining time of calls that ended on another thread, or after their function had returned"},
	{"nvcsw", NULL, NULL, TBL_COUNT, AT(sum.nvcsw), .help = "number of times that the thread left its CPU to wait"},
	{"nivcsw", NULL, NULL, TBL_COUNT, AT(sum.nivcsw),
	 .help = "number of times that the thread had to leave its CPU"},
	{"minflt", NULL, NULL, TBL_COUNT, AT(sum.minflt), .asked = has_faults,
	 .help = "page faults without I/O; not known with --agent"},
	{"majflt", NULL, NULL, TBL_COUNT, AT(sum.majflt), .asked = has_faults, .help = "page faults with I/O"},
	{"migrated", NULL, NULL, TBL_COUNT, AT(sum.migrated),
	 .help = "number of calls that blocked and ended on another CPU; on_cpu_ns of each may be wrong by 10 ms, and "
		 "runq_ns may include some of blocked_ns"},
	{0},
};
