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
const struct view_column view_account_columns[] = {
	{"on_cpu_ns", NULL, NULL, VIEW_NS, AT(on_cpu_ns)},
	{"runq_ns", NULL, NULL, VIEW_NS, AT(sum.runq_ns), .help = "could run, but waited for a CPU"},
	{"blocked_ns", NULL, NULL, VIEW_NS, AT(sum.blocked_ns), .help = "slept, or waited for a lock, a disk, a page"},
	{"elsewhere_ns", NULL, NULL, VIEW_NS, AT(sum.elsewhere_ns),
	 .help = "of calls that ended on another thread, or after their function had returned: the rest"},
	{"nvcsw", NULL, NULL, VIEW_COUNT, AT(sum.nvcsw), .help = "times the thread left its CPU because it waited"},
	{"nivcsw", NULL, NULL, VIEW_COUNT, AT(sum.nivcsw), .help = "times it had to leave it"},
	{"minflt", NULL, NULL, VIEW_COUNT, AT(sum.minflt), .asked = has_faults,
	 .help = "page faults without I/O; they are not known with --agent"},
	{"majflt", NULL, NULL, VIEW_COUNT, AT(sum.majflt), .asked = has_faults, .help = "page faults with I/O"},
	{"migrated", NULL, NULL, VIEW_COUNT, AT(sum.migrated),
	 .help = "calls that blocked and ended on another CPU: on_cpu_ns of each may be 10 ms wrong, and runq_ns may "
		 "hold some of blocked_ns"},
	{0},
};
