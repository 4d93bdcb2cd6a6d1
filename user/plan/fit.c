// SPDX-License-Identifier: Apache-2.0
/* Makes a plan fit a backend with a limit on probes. The least important probes are removed first. */
#include "plan/priv.h"

#include <string.h>

static struct plan_site *sites_of(const struct plan *plan, size_t *n)
{
	*n = buf_count(&plan->sites, struct plan_site);
	return (struct plan_site *)plan->sites.data;
}

static void drop(struct plan *plan, const struct plan_probe *p, bool ends_only)
{
	size_t n, i, kept = 0;
	struct plan_site *sites = sites_of(plan, &n);

	for (i = 0; i < n; i++)
		if (sites[i].probe != p || (ends_only && sites[i].row->action != MXBPF_ACT_CLOSE_CUT))
			sites[kept++] = sites[i];
	plan->sites.len = kept * sizeof(*sites);
}

void plan_drop_sites(struct plan *plan, const struct plan_probe *p)
{
	drop(plan, p, false);
}

/* Returns how many probes the row can save: its ends, or all probes of an optional row. */
static size_t spared(const struct plan *plan, const struct plan_probe *p, bool ends)
{
	size_t n, i, sum = 0;
	const struct plan_site *sites = sites_of(plan, &n);

	if (!ends && !p->row->optional)
		return 0;
	for (i = 0; i < n; i++)
		sum += sites[i].probe == p && (!ends || sites[i].row->action == MXBPF_ACT_CLOSE_CUT);
	return sum;
}

static struct plan_probe *largest(struct plan *plan, bool ends)
{
	struct plan_probe *best = NULL;
	size_t most = 0, i;

	for (i = 0; plan->probes && i < plan->nprobes; i++) {
		size_t n = spared(plan, &plan->probes[i], ends);

		if (n && n >= most) { /* of two equal rows take the later one: adapters list important rows first */
			most = n;
			best = &plan->probes[i];
		}
	}
	return best;
}

/* Removes the ends of a row. Its spans then last until the next event of their thread, which is an upper bound. */
static void give_up_ends(struct plan *plan, struct plan_probe *p)
{
	size_t at = (size_t)(p - plan->probes), n, i;
	struct plan_site *sites;

	drop(plan, p, true);
	sites = sites_of(plan, &n);
	for (i = 0; i < n; i++)
		if (sites[i].probe == p && sites[i].row == &plan->rows[at])
			sites[i].row = &plan->endless[at];
	plan->iteration_ends[at].end = MXBPF_END_NEXT;
	p->nendless = p->nfuncs;
}

static bool ends_pairs(const struct plan *plan, uint8_t cls)
{
	size_t n, i;
	const struct plan_site *sites = sites_of(plan, &n);

	for (i = 0; i < n; i++)
		if (sites[i].row->action == MXBPF_ACT_CLOSE_PAIR && sites[i].row->cls == cls)
			return true;
	return false;
}

/* Spans that never end would fill the stacks of their threads. The ends in later libraries come with the libraries. */
static void drop_endless_pairs(struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];
		const struct mxbpf_row *row = &plan->rows[i];

		if (!p->wanted || p->reason[0] || p->row->each_lib || row->action != MXBPF_ACT_OPEN ||
		    row->end != MXBPF_END_PAIR || ends_pairs(plan, row->cls))
			continue;
		plan_refuse(p, "no probe is left to end its spans");
		plan_drop_sites(plan, p);
	}
}

/* Exceptions tell right cuts from wrong ones. Without cuts nobody asks for them. */
static bool is_raise(const struct adp_probe *row)
{
	return row->row.action == MXBPF_ACT_RAISE;
}

static bool is_expendable(const struct adp_probe *row)
{
	return row->expendable;
}

static void spare_rows(struct plan *plan, bool (*is_one)(const struct adp_probe *row))
{
	size_t i;

	for (i = 0; i < plan->nprobes; i++)
		if (is_one(plan->probes[i].row)) {
			plan->probes[i].spare = true;
			plan->probes[i].wanted = false;
			plan_drop_sites(plan, &plan->probes[i]);
		}
}

static void fit_backend(struct plan *plan)
{
	struct plan_probe *p;
	bool raises = true, expendable = true;

	while (plan->opts.probes_max && buf_count(&plan->sites, struct plan_site) > plan->opts.probes_max) {
		if (expendable) {
			spare_rows(plan, is_expendable);
			expendable = false;
			continue;
		}
		p = largest(plan, true);
		if (p) {
			give_up_ends(plan, p);
			continue;
		}
		if (raises) {
			spare_rows(plan, is_raise);
			raises = false;
			continue;
		}
		p = largest(plan, false);
		if (!p)
			return;
		plan_refuse(p, "it needs %zu more probes, but only %u can be attached in total", spared(plan, p, false),
			    plan->opts.probes_max);
		plan_drop_sites(plan, p);
	}
}

static const struct plan_probe *row_named(const struct plan *plan, const char *name)
{
	const struct plan_probe *p = plan->probes;

	while (p < plan->probes + plan->nprobes && strcmp(p->row->name, name))
		p++;
	return p < plan->probes + plan->nprobes ? p : NULL;
}

/* Removes rows that are useless without a removed one. */
static void drop_dependent(struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];
		const struct plan_probe *on = p->row->ends ? row_named(plan, p->row->ends) : NULL;

		if (!p->wanted || p->reason[0] || !on || !on->reason[0])
			continue;
		plan_refuse(p, "it requires %s, which is refused", p->row->ends);
		plan_drop_sites(plan, p);
	}
}

void plan_fit(struct plan *plan)
{
	fit_backend(plan);
	drop_dependent(plan);
	drop_endless_pairs(plan);
	drop_dependent(plan);
}
