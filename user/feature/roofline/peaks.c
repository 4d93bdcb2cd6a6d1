// SPDX-License-Identifier: Apache-2.0
/* What a device can do at most: floating-point operations by type, and bytes of its memory. */
#include "feature/roofline/roofline.h"

#include <stddef.h>

/*
 * Operations of a multiprocessor in a cycle, a multiply-add counts as two: "Arithmetic Instructions" of the CUDA C++
 * Programming Guide, and the white papers of the architectures for tensor cores, of dense matrices. 0: the type has no
 * instructions. GeForce cards of 8.6, 8.9 and 12.0 have a half of what is said for tensor cores here.
 */
static const struct rate {
	uint16_t major, minor;
	uint16_t float64, float32, tf32, float16, bfloat16;
} rates[] = {
	{6, 0, 64, 128, 0, 256, 0},	     /* P100 */
	{7, 0, 64, 128, 0, 1024, 0},	     /* V100 */
	{7, 5, 4, 128, 0, 1024, 0},	     /* T4 */
	{8, 0, 128, 128, 1024, 2048, 2048},  /* A100; float64 by tensor cores */
	{8, 6, 4, 256, 512, 1024, 1024},     /* A40, A10 */
	{8, 9, 4, 256, 512, 1024, 1024},     /* L40, L4 */
	{9, 0, 256, 256, 2048, 4096, 4096},  /* H100; float64 by tensor cores */
	{10, 0, 128, 256, 4096, 8192, 8192}, /* B200 */
	{12, 0, 4, 256, 512, 1024, 1024},    /* RTX PRO 6000 */
};

static const struct rate *rate_of(const struct mxbpf_gpu_device *d)
{
	size_t i;

	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		if (rates[i].major == d->major && rates[i].minor == d->minor)
			return &rates[i];
	return NULL;
}

struct roofline_peaks roofline_peaks(const struct mxbpf_gpu_device *d, const struct mxbpf_gpu_limits *l)
{
	const struct rate *r = d ? rate_of(d) : NULL;
	const double cycles = d ? 1e3 * d->clock_khz * d->multiprocessors : 0; /* per second, of all multiprocessors */
	struct roofline_peaks p = {.bytes = 0};

	/* Two transfers in a cycle. */
	if (l)
		p.bytes = 2 * 1e3 * l->memory_clock_khz * l->memory_bus_bits / 8;
	if (!r)
		return p;
	p.flops[FLOPS_FLOAT64] = cycles * r->float64;
	p.flops[FLOPS_FLOAT32] = cycles * r->float32;
	p.flops[FLOPS_FLOAT16] = cycles * r->float16;
	p.flops[FLOPS_BFLOAT16] = cycles * r->bfloat16;
	p.tf32 = cycles * r->tf32;
	return p;
}
