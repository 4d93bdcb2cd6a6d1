// SPDX-License-Identifier: Apache-2.0
/* Measures what shared links cost processes that are no targets: the number of hits and the time of one. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>

#include "attach/trap.h"

static uint64_t sum_hits(const struct att *a)
{
	int n = libbpf_num_possible_cpus(), i;
	uint64_t *each = n > 0 ? calloc((size_t)n, sizeof(*each)) : NULL, sum = 0;
	__u32 zero = 0;

	if (each && !bpf_map_lookup_elem(bpf_map__fd(a->skel->maps.strangers), &zero, each))
		for (i = 0; i < n; i++)
			sum += each[i];
	free(each);
	return sum;
}

struct att_strangers att_strangers(struct att *a)
{
	const uint64_t hits = sum_hits(a) - a->trap_trials;

	return (struct att_strangers){hits, hits && a->nvariants ? trap_hit_ns(a, a->variants[0].prog_fd) : 0};
}
