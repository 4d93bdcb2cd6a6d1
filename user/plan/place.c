// SPDX-License-Identifier: Apache-2.0
/* Finds the addresses of libraries in a process, and checks that a plan for one process fits another. */
#include <errno.h>
#include <string.h>

#include "plan/priv.h"

unsigned plan_image(struct plan *plan, struct tgt_lib *lib)
{
	unsigned i;

	for (i = 0; i < MXBPF_IMAGES_MAX; i++) {
		if (!plan->images[i])
			plan->images[i] = lib;
		if (plan->images[i] == lib)
			return i + 1;
	}
	return 0;
}

static int place_image(struct tgt *t, struct tgt_lib *lib, struct mxbpf_image *out)
{
	uint64_t start_va, end_va;
	struct elf *elf;
	int err = tgt_lib_elf(t, lib, &elf, NULL);

	if (err)
		return err;
	elf_extent(elf, &start_va, &end_va);
	*out = (struct mxbpf_image){lib->load_bias + start_va, lib->load_bias + end_va, lib->load_bias};
	return 0;
}

void plan_place_images(struct plan *plan, struct tgt *t)
{
	unsigned i;

	for (i = 0; i < MXBPF_IMAGES_MAX && plan->images[i]; i++)
		place_image(t, plan->images[i], &plan->target.images[i]);
}

static struct tgt_lib *same_file(struct tgt *t, const struct tgt_lib *lib)
{
	size_t i;

	for (i = 0; i < tgt_nlibs(t); i++)
		if (tgt_lib(t, i)->dev == lib->dev && tgt_lib(t, i)->ino == lib->ino)
			return tgt_lib(t, i);
	return NULL;
}

bool plan_same_build(const struct tgt_lib *a, const struct tgt_lib *b)
{
	if (!a->build_id_bytes)
		return a->dev == b->dev && a->ino == b->ino;
	return a->build_id_bytes == b->build_id_bytes && !memcmp(a->build_id, b->build_id, a->build_id_bytes);
}

int plan_fits(const struct plan *p, struct tgt *t, struct mxbpf_target *out)
{
	const struct plan_site *site = (const struct plan_site *)p->sites.data;
	const struct plan_site *end = site + buf_count(&p->sites, struct plan_site);
	struct tgt_lib *lib, *last = NULL;
	struct mxbpf_image image;
	uint64_t shift;
	unsigned i;

	lib = same_file(t, p->lib); /* with the agent there may be no site in it */
	if (!lib || place_image(t, lib, &image) || !plan_same_build(lib, p->lib))
		return -ENOENT;
	shift = image.base - p->target.static_base;
	for (; site < end; site++) {
		if (site->lib == last)
			continue;
		last = site->lib;
		lib = same_file(t, last);
		/* The file may have been overwritten since the plan was made. */
		if (!lib || place_image(t, lib, &image) || !plan_same_build(lib, last))
			return -ENOENT;
	}
	*out = p->target;
	out->static_base += shift;
	out->seq.got += out->seq.got ? shift : 0;
	out->seq_thread.got += out->seq_thread.got ? shift : 0;
	for (i = 0; i < MXBPF_IMAGES_MAX; i++) {
		lib = p->images[i] ? same_file(t, p->images[i]) : NULL;
		if (p->images[i] && (!lib || place_image(t, lib, &out->images[i])))
			return -ENOENT;
		if (p->target.undefined - p->target.images[i].start <
		    p->target.images[i].end - p->target.images[i].start)
			out->undefined += out->images[i].base - p->target.images[i].base;
	}
	return 0;
}

int plan_like(struct plan *p, const struct plan *other)
{
	struct plan_site *site = (struct plan_site *)p->sites.data;
	size_t i;

	for (i = 0; i < p->nprobes; i++)
		if (p->probes[i].nfuncs && p->probes[i].nfuncs != other->probes[i].nfuncs)
			return -ENOTSUP;
	for (i = 0; i < p->nprobes; i++) {
		p->rows[i].alt_object = p->endless[i].alt_object = p->iteration_ends[i].alt_object =
			other->rows[i].alt_object;
		p->rows[i].alt_name = p->endless[i].alt_name = p->iteration_ends[i].alt_name = other->rows[i].alt_name;
	}
	for (i = 0; i < buf_count(&p->sites, struct plan_site); i++)
		site[i].cookie +=
			(uint64_t)other->probes[site[i].probe - p->probes].first_func - site[i].probe->first_func;
	return 0;
}
