// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of NVTX in a process that runs already. Functions of NVIDIA's headers look for a tool once, at the first call
 * of their library. Where they look into a variable, the agent brings mxbpf's injection library along. mxbpf does not
 * change the environment of a running process: another thread may be reading it.
 */
#include "session/priv.h"

#include <fnmatch.h>
#include <string.h>

#include "elf/elf.h"
#include "nvtx/nvtx.h"

#define BYTES_MAX (64ll << 20) /* of files in which symbols are looked for: that reads their tables */
#define FILES_MAX (1u << 15)

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
struct nvtx_file {
	bool has, extends;
	struct elf_sym tool, extension, state;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_bytes; /* 0: it has none */
};

/* Most libraries have no such symbols, so they are not kept open. */
static void find_symbols(struct tgt *t, const struct tgt_lib *lib, struct nvtx_file *s)
{
	struct elf *f;

	if (tgt_lib_look(t, lib, is_user(lib->path, true) ? UINT64_MAX : BYTES_MAX, &f))
		return;
	s->has = !elf_find_sym(f, NVTX_TOOL, &s->tool, NULL) && !elf_find_sym(f, NVTX_STATE, &s->state, NULL);
	s->extends = s->has && !elf_find_sym(f, NVTX_EXTENSION, &s->extension, NULL);
	elf_close(f);
}

static bool nvtx_is_same(const struct nvtx_file *s, const struct tgt_lib *lib)
{
	return s->build_id_bytes == lib->build_id_bytes && !memcmp(s->build_id, lib->build_id, s->build_id_bytes);
}

/*
 * Returns what the file of a library has, of which the processes of a job map the same. NULL: the process has another
 * file there than the one that was looked at, or there is no room.
 */
static const struct nvtx_file *file_of(struct session *ses, struct tgt *t, struct tgt_lib *lib)
{
	uint64_t *at = ses->nvtx.index.len < FILES_MAX ? hash_put(&ses->nvtx.index, lib->dev, lib->ino) : NULL;
	struct nvtx_file new = {.has = false};
	struct nvtx_file *s;
	struct elf *f;

	if (!at)
		return NULL;
	if (!*at) {
		find_symbols(t, lib, &new);
		if (new.has && tgt_lib_elf(t, lib, &f, NULL))
			return NULL;
		memcpy(new.build_id, lib->build_id, lib->build_id_bytes);
		new.build_id_bytes = lib->build_id_bytes;
		if (buf_put(&ses->nvtx.files, &new, sizeof(new)))
			return NULL;
		*at = buf_count(&ses->nvtx.files, new);
	}
	s = buf_at(&ses->nvtx.files, struct nvtx_file, *at - 1);
	return !s->has || (!tgt_lib_elf(t, lib, &f, NULL) && nvtx_is_same(s, lib)) ? s : NULL;
}

static void add_variable(struct ses_nvtx *n, struct tgt *t, uint64_t at, uint64_t bit)
{
	uint64_t tool;

	if (at % sizeof(tool) || tgt_read(t, at, &tool, sizeof(tool)) || tool || n->beside.nargs >= SES_NVTX_MAX)
		return;
	n->variables[n->beside.nargs++] = at | bit;
}

/* Returns false if the library has called NVTX already, or looks into no variable. */
static bool find_variables(struct session *ses, struct tgt *t, struct tgt_lib *lib, struct ses_nvtx *n)
{
	const struct nvtx_file *s = file_of(ses, t, lib);
	uint32_t state;

	if (!s || !s->has || tgt_read(t, s->state.va + lib->load_bias, &state, sizeof(state)) || state)
		return false;
	add_variable(n, t, s->tool.va + lib->load_bias, 0);
	if (s->extends)
		add_variable(n, t, s->extension.va + lib->load_bias, 1);
	return true;
}

/* Returns true if nothing is to be done about the ranges of a process: there is a tool, or nobody wants them. */
static bool is_settled(const struct ses_opts *o, const struct tgt *t)
{
	char tool[8];

	return !(o->probes & PROBE_MARK) || tgt_env_text(t, "NVTX_INJECTION64_PATH", tool, sizeof(tool));
}

static bool enters(const struct ses_opts *o)
{
	return o->agent || o->gpu;
}

/* Returns the path of a library whose ranges will not be seen, or NULL. */
static const char *find_all(struct session *ses, struct tgt *t, struct ses_nvtx *n)
{
	const bool may = enters(ses->o);
	const char *lost = NULL;
	struct tgt_lib *lib;
	size_t i;

	for (i = 0; i < tgt_nlibs(t); i++) {
		lib = tgt_lib(t, i);
		if (!(may && find_variables(ses, t, lib, n)) && is_user(lib->path, may || ses->o->by_range))
			lost = lib->path;
	}
	if (!n->beside.nargs)
		return lost;
	n->beside.image = nvtx_image;
	n->beside.image_bytes = nvtx_image_bytes;
	n->beside.name = NVTX_NAME;
	n->beside.args = n->variables;
	if (agt_start_va(nvtx_image, nvtx_image_bytes, NVTX_OFFER, &n->beside.call_va, NULL))
		n->beside.nargs = 0;
	ses->nvtx.offered |= n->beside.nargs > 0;
	return lost;
}

void ses_nvtx_find(struct session *ses, struct tgt *t, struct ses_nvtx *n)
{
	const char *lost = is_settled(ses->o, t) || !enters(ses->o) ? NULL : find_all(ses, t, n);

	if (lost)
		ses_detail(ses, "ranges of NVTX in %.80s of process %d are not recorded", strrchr(lost, '/') + 1,
			   tgt_pid(t));
}

const struct agt_beside *ses_nvtx_beside(const struct ses_nvtx *n)
{
	return n->beside.nargs ? &n->beside : NULL;
}

void ses_nvtx_note(struct session *ses, const struct ses_target *of)
{
	const char *lost =
		ses->o->command || is_settled(ses->o, of->tgt) ? NULL : find_all(ses, of->tgt, &ses->nvtx.first);

	if (lost)
		ses_note(ses,
			 "ranges of NVTX in %.80s are not recorded: its functions come from NVIDIA's headers, which "
			 "look for a tool once, at the first call; to see them, start the program with sudo mxbpf "
			 "--agent -- COMMAND",
			 strrchr(lost, '/') + 1);
}

void ses_nvtx_free(struct session *ses)
{
	hash_fini(&ses->nvtx.index);
	buf_fini(&ses->nvtx.files);
}
