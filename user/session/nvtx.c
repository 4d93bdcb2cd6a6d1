// SPDX-License-Identifier: Apache-2.0
/* Says which libraries of a running process have ranges of NVTX that nobody can see any more. */
#include "session/priv.h"

#include <fnmatch.h>
#include <string.h>

/*
 * Libraries that are known to use the functions of NVIDIA's headers. Such a library looks for a tool once, at its first
 * call, by an environment variable. mxbpf does not change the environment of a running process: another thread may be
 * reading it.
 */
static const struct {
	const char *path;
	bool frequent; /* every job on a GPU maps it: only said if the user asks for ranges or code in the process */
} users[] = {
	{"*/nvtx/_lib/lib.*.so", false},
	{"*/libnccl.so*", true},
	{"*/libtorch_cuda.so*", true},
};

static const char *user_of(struct tgt *t, bool frequent)
{
	size_t i, k;

	for (i = 0; i < tgt_nlibs(t); i++)
		for (k = 0; k < sizeof(users) / sizeof(users[0]); k++)
			if ((frequent || !users[k].frequent) && !fnmatch(users[k].path, tgt_lib(t, i)->path, 0))
				return tgt_lib(t, i)->path;
	return NULL;
}

void ses_nvtx_note(struct session *ses, const struct ses_target *of)
{
	const struct ses_opts *o = ses->o;
	const char *path, *name;
	char tool[8];

	if (o->command || !(o->probes & PROBE_MARK) ||
	    tgt_env_text(of->tgt, "NVTX_INJECTION64_PATH", tool, sizeof(tool)))
		return;
	path = user_of(of->tgt, o->agent || o->gpu || o->by_range);
	if (!path)
		return;
	name = strrchr(path, '/') + 1;
	ses_note(ses,
		 "ranges of NVTX in %.80s are not recorded: its functions come from NVIDIA's headers, which look for a "
		 "tool "
		 "once, at the first call; to see them, start the program with mxbpf --agent -- COMMAND",
		 name);
}
