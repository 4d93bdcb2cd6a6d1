// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of NVTX in a process that runs already. Functions of NVIDIA's headers look for a tool once, at the first call
 * of their library. Where they look into a variable, the agent brings mxbpf's injection library along. mxbpf does not
 * change the environment of a running process: another thread may be reading it.
 */
#include "session/priv.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/open_now.h"
#include "elf/elf.h"
#include "nvtx/nvtx.h"

#define VARIABLES_MAX 64
#define BYTES_MAX     (64ll << 20) /* of files in which symbols are looked for: that reads their tables */

/* Libraries that are known to use the functions of NVIDIA's headers. */
static const struct {
	const char *path;
	bool frequent; /* every job on a GPU maps it: only said if the user asks for ranges or code in the process */
} users[] = {
	{"*/nvtx/_lib/lib.*.so", false},
	{"*/libnccl.so*", true},
	{"*/libtorch_cuda.so*", true},
};

static bool is_user(const char *path, bool frequent)
{
	size_t k;

	for (k = 0; k < sizeof(users) / sizeof(users[0]); k++)
		if ((frequent || !users[k].frequent) && !fnmatch(users[k].path, path, 0))
			return true;
	return false;
}

/* Symbols of one library. They are local, so only files that are not stripped have them. */
struct found {
	struct elf_sym tool, extension, state;
	bool extends;
};

/* Most libraries have none, so they are not kept open. */
static bool find_symbols(const struct tgt_lib *lib, struct found *s)
{
	const int fd = open_now(AT_FDCWD, lib->open_path);
	struct elf *f = NULL;
	struct stat st;
	bool found;

	if (fd < 0)
		return false;
	found = !fstat(fd, &st) && (st.st_size <= BYTES_MAX || is_user(lib->path, true)) && !elf_open(fd, &f, NULL) &&
		!elf_find_sym(f, NVTX_TOOL, &s->tool, NULL) && !elf_find_sym(f, NVTX_STATE, &s->state, NULL);
	s->extends = found && !elf_find_sym(f, NVTX_EXTENSION, &s->extension, NULL);
	elf_close(f);
	close(fd);
	return found;
}

static void add_variable(struct session *ses, struct tgt *t, uint64_t at, uint64_t bit)
{
	const uint64_t arg = at | bit;
	uint64_t tool;

	if (at % sizeof(tool) || tgt_read(t, at, &tool, sizeof(tool)) || tool ||
	    buf_count(&ses->nvtx_variables, uint64_t) >= VARIABLES_MAX)
		return;
	buf_put(&ses->nvtx_variables, &arg, sizeof(arg)); /* without memory the library is given no tool */
}

/* Returns false if the library has called NVTX already, or looks into no variable. */
static bool find_variables(struct session *ses, struct tgt *t, struct tgt_lib *lib)
{
	struct found s;
	struct elf *f;
	uint32_t state;

	if (!find_symbols(lib, &s) || tgt_lib_elf(t, lib, &f, NULL) ||
	    tgt_read(t, s.state.va + lib->load_bias, &state, sizeof(state)) || state)
		return false;
	add_variable(ses, t, s.tool.va + lib->load_bias, 0);
	if (s.extends)
		add_variable(ses, t, s.extension.va + lib->load_bias, 1);
	return true;
}

static void bring_along(struct session *ses)
{
	ses->nvtx_beside = (struct agt_beside){.image = nvtx_image,
					       .image_bytes = nvtx_image_bytes,
					       .name = NVTX_NAME,
					       .args = (const uint64_t *)ses->nvtx_variables.data,
					       .nargs = buf_count(&ses->nvtx_variables, uint64_t)};
	ses->nvtx = ses->nvtx_beside.nargs &&
		    !agt_start_va(nvtx_image, nvtx_image_bytes, NVTX_OFFER, &ses->nvtx_beside.call_va, NULL);
}

const struct agt_beside *ses_nvtx_beside(const struct session *ses)
{
	return ses->nvtx_beside.call_va ? &ses->nvtx_beside : NULL;
}

void ses_nvtx_note(struct session *ses, const struct ses_target *of)
{
	const struct ses_opts *o = ses->o;
	const bool enters = o->agent || o->gpu;
	const char *lost = NULL;
	struct tgt_lib *lib;
	char tool[8];
	size_t i;

	if (o->command || o->slices || !(o->probes & PROBE_MARK) ||
	    tgt_env_text(of->tgt, "NVTX_INJECTION64_PATH", tool, sizeof(tool)))
		return;
	for (i = 0; i < tgt_nlibs(of->tgt); i++) {
		lib = tgt_lib(of->tgt, i);
		if (!(enters && find_variables(ses, of->tgt, lib)) && is_user(lib->path, enters || o->by_range))
			lost = lib->path;
	}
	if (ses->nvtx_variables.len)
		bring_along(ses);
	if (lost)
		ses_note(ses,
			 "ranges of NVTX in %.80s are not recorded: its functions come from NVIDIA's headers, which "
			 "look for a tool once, at the first call; to see them, start the program with mxbpf --agent "
			 "-- COMMAND",
			 strrchr(lost, '/') + 1);
}
