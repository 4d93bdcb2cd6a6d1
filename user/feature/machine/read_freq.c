// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the frequencies of CPUs. That of an idle CPU means nothing, so only busy CPUs are read, and only some if there
 * are many.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/machine/read_priv.h"

struct ticks {
	uint64_t busy, all;
};

/*
 * Returns how many CPUs were busy at least half of the time since the last call, the ids of the first ones, and in
 * *ncpus the number of all CPUs.
 */
static int find_busy(struct mach_freq *f, const char *stat, struct buf *busy, unsigned *ncpus)
{
	static const struct ticks none;
	struct ticks now, *last;
	size_t pos = 0;
	unsigned cpu;

	for (*ncpus = 0; mach_next_cpu(stat, &pos, &cpu, &now.busy, &now.all); ++*ncpus) {
		while (buf_count(&f->ticks, struct ticks) <= cpu)
			if (buf_put(&f->ticks, &none, sizeof(none)))
				return -ENOMEM;
		last = buf_at(&f->ticks, struct ticks, cpu);
		if (last->all && now.all > last->all && (now.busy - last->busy) * 2 >= now.all - last->all &&
		    buf_put(busy, &cpu, sizeof(cpu)))
			return -ENOMEM;
		*last = now;
	}
	return 0;
}

static int read_sys(const struct mach_freq *f, unsigned cpu, const char *name, uint64_t *khz)
{
	static const struct machine_source number = {.form = MACHINE_FORM_NUMBER};
	char path[256], text[64];

	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u/cpufreq/%s", f->sys, cpu, name);
	if (mach_slurp(path, text, sizeof(text)) < 0 || mach_parse(&number, text, khz))
		return -ENODATA;
	return *khz && *khz < UINT32_MAX ? 0 : -ENODATA;
}

static int read_cpuinfo(struct mach_freq *f, unsigned cpu, bool again, uint64_t *khz)
{
	if (!f->cpuinfo)
		f->cpuinfo = malloc(MACH_TEXT_BYTES);
	else if (!again)
		return mach_cpuinfo_khz(f->cpuinfo, cpu, khz);
	if (!f->cpuinfo || mach_slurp("/proc/cpuinfo", f->cpuinfo, MACH_TEXT_BYTES) < 0)
		return -ENODATA;
	return mach_cpuinfo_khz(f->cpuinfo, cpu, khz);
}

int mach_freq(struct mach_freq *f, const char *stat, uint64_t *khz)
{
	uint64_t sum = 0, max_sum = 0, now, max;
	struct buf busy = {0};
	unsigned ncpus, cpu, n = 0, nmax = 0;
	size_t i, step;
	int err = find_busy(f, stat, &busy, &ncpus);

	step = (buf_count(&busy, unsigned) + MACH_SAMPLED_MAX - 1) / MACH_SAMPLED_MAX;
	for (i = 0; !err && i < buf_count(&busy, unsigned); i += step) {
		cpu = *buf_at(&busy, unsigned, i);
		if (read_sys(f, cpu, "scaling_cur_freq", &now) &&
		    (ncpus > MACH_CPUINFO_MAX || read_cpuinfo(f, cpu, !i, &now)))
			continue;
		sum += now;
		n++;
		if (!read_sys(f, cpu, "cpuinfo_max_freq", &max)) {
			max_sum += max;
			nmax++;
		}
	}
	buf_fini(&busy);
	f->khz_max = n && nmax == n ? max_sum / n : 0;
	if (err || !n)
		return err ? err : -ENODATA;
	*khz = sum / n;
	return 0;
}

void mach_freq_fini(struct mach_freq *f)
{
	buf_fini(&f->ticks);
	free(f->cpuinfo);
}
