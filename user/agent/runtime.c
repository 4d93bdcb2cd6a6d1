// SPDX-License-Identifier: Apache-2.0
/* Finds what a runtime's library has for the agent. */
#include <errno.h>
#include <string.h>

#include "agent/state.h"

/* Finds the functions of the runtime that the agent calls. Without `calls` there are none. */
static int find_callbacks(const struct plan *p, struct elf *elf, const struct agt_place *at, bool calls,
			  struct runtime *r, struct err *e)
{
	const struct adp_agent *names = &p->adp->agent;
	bool numbers = !p->no_seq.code;
	struct {
		const char *name;
		__u64 *to;
	} wanted[] = {{names->add_callback, &r->config.add_callback},
		      {names->remove_callback, &r->config.remove_callback},
		      {names->name, &r->config.name},
		      {numbers ? p->adp->seq.next_symbol : NULL, &r->config.next_number},
		      {numbers ? p->adp->seq.thread_symbol : NULL, &r->config.thread_number}};
	struct elf_sym sym;
	unsigned i;

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!wanted[i].name)
			continue;
		if (!elf_find_sym(elf, wanted[i].name, &sym, NULL))
			*wanted[i].to = sym.va + at->load_bias;
		else if (calls)
			return err_set(e, ERR_TARGET, -ENOENT,
				       "--agent: cannot use %s: it exports no %s; remove --agent", p->lib->path,
				       wanted[i].name);
	}
	if (names->step_callbacks && !elf_find_sym(elf, names->step_callbacks, &sym, NULL))
		r->config.step_callbacks = sym.va + at->load_bias;
	memcpy(r->config.hooked, at->memory.hooked, sizeof(r->config.hooked));
	memcpy(r->config.hooks, at->memory.hooks, sizeof(r->config.hooks));
	r->config.number_off = (uint32_t)p->number_off;
	r->config.of_thread_off = (uint32_t)p->of_thread_off;
	return 0;
}

int agt_find_runtime(const struct plan *p, struct tgt *t, const struct agt_place *at, bool calls, struct runtime *r,
		     struct err *e)
{
	const struct adp_agent *names = &p->adp->agent;
	const char *option = calls ? "--agent" : "--gpu";
	struct insn_entry entry;
	struct elf_sym sym;
	struct elf *elf;
	unsigned i;

	*r = (struct runtime){.path = NULL};
	if (!names->entries[0] || (calls && !names->add_callback))
		return err_set(e, ERR_USAGE, -ENOTSUP, "%s: %s is not supported; remove %s", option, p->adp->title,
			       option);
	if (tgt_lib_elf(t, p->lib, &elf, e) || find_callbacks(p, elf, at, calls, r, e))
		return e->code;
	for (i = 0; i < ADP_AGENT_ENTRIES && names->entries[i] && elf_find_sym(elf, names->entries[i], &sym, NULL); i++)
		;
	if (i == ADP_AGENT_ENTRIES || !names->entries[i] || elf_exec_off(elf, sym.va, &r->entry_off))
		return err_set(e, ERR_TARGET, -ENOENT, "%s: cannot use %s: it exports no %s; remove %s", option,
			       p->lib->path, names->entries[0], option);
	for (i = 0; i < ADP_AGENT_CLEARS; i++)
		if (!names->clear[i] || elf_find_sym(elf, names->clear[i], &sym, NULL) ||
		    plan_place(elf, &sym, &entry, &r->clear_offs[i], NULL))
			r->clear_offs[i] = 0;
	r->path = p->lib->open_path;
	return 0;
}

struct agt_place agt_place_of(const struct plan *p, struct tgt *t)
{
	return (struct agt_place){.pid = tgt_pid(t),
				  .load_bias = p->lib->load_bias,
				  .undefined = p->target.undefined,
				  .memory = p->agent_memory};
}

struct mxbpf_agent_details agt_details(const struct plan *p, const struct agt_place *at, const struct agt_opts *o)
{
	struct mxbpf_agent_details d = {.wanted = o->args ? MXBPF_AGENT_ARGS : 0,
					.inputs_off = p->inputs_off,
					.keys_off = p->tensor_keys_off,
					.storage_off = p->tensor_storage_off,
					.list_off = p->list.elements_off,
					.list_tag = p->list.tag,
					.list_kind = p->list.kind,
					.undefined = at->undefined};

	if (o->python && o->is_finalizing) {
		d.wanted |= MXBPF_AGENT_STACK | (o->stacks_of_memory ? MXBPF_AGENT_STACK_ALLOC : 0);
		d.python = *o->python;
		d.is_finalizing = o->is_finalizing;
	}
	return d;
}

/* Any build works that exports the functions that the agent calls. Without no_seq, calls have numbers too. */
int agt_usable(const struct plan *p, struct tgt *t, bool calls, struct err *e)
{
	const struct agt_place at = agt_place_of(p, t);
	struct runtime r;

	return agt_find_runtime(p, t, &at, calls, &r, e);
}
