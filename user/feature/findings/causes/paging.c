// SPDX-License-Identifier: Apache-2.0
/*
 * Pages that are not in memory: swapped out, or of files that the page cache has lost. The kernel's account of each
 * process says how much was read, and the looks at its threads say where and how often they wait for it.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/syscall.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/lines/lines.h"
#include "feature/resident/resident.h"

#define LOOKS_LEAST 10 /* at a thread, to judge it */

static const struct resident *memory_of(const struct mdl *m, uint32_t tgid)
{
	const struct resident *p;
	size_t i;

	for (i = 0; (p = resident_at(m, i)) && p->tgid != tgid; i++)
		;
	return p;
}

static void read_counts(const struct resident *r, struct cause_paging *p)
{
	const struct mxbpf_resident *first = &r->at[0], *last = &r->at[r->n - 1], *half = &r->at[r->n / 2];

	p->over_ns = last->h.ts_ns > first->h.ts_ns ? last->h.ts_ns - first->h.ts_ns : 0;
	p->majflt = last->majflt > first->majflt ? last->majflt - first->majflt : 0;
	p->read_bytes = last->read_bytes > first->read_bytes ? last->read_bytes - first->read_bytes : 0;
	p->resident_bytes = last->bytes;
	p->swapped_bytes = last->swapped_bytes > half->swapped_bytes ? last->swapped_bytes : half->swapped_bytes;
}

static double each_second(uint64_t n, uint64_t ns)
{
	return facts_share((double)n * 1e9, (double)ns);
}

/*
 * A line at which a thread waits for the disk also has the time in which the kernel finds the page and copies it. So
 * other looks at it count as well, up to PLACE_LOOKS for each that found it waiting, if these are one part of so many.
 */
#define WAITS_PART  8
#define WAITS_LEAST 2
#define PLACE_LOOKS 4
#define FAULTS_MANY 200 /* a second: the kernel's account says that pages are read, and one look says where */

struct place {
	uint64_t looks, waits;
};

/* It waits for a disk, and not for what it has written itself. */
static bool is_read(const struct mxbpf_agg_line *l)
{
	return l->sleeps == MXBPF_SLEEP_DISK && l->syscall != SYS_fsync && l->syscall != SYS_fdatasync &&
	       l->syscall != SYS_sync_file_range;
}

static int count_places(const struct mdl *m, struct cause_paging *p, uint32_t tid, struct facts_tally *waits,
			struct hash *index, struct buf *places)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct place *place;
	const char *text;
	bool added;

	for (i = 0; i < n; i++) {
		if (l[i].h.tgid != p->tgid || (tid ? l[i].tid != tid : !l[i].main))
			continue;
		add_sat(&waits->of, l[i].count);
		text = lines_of_program(m, l[i].stack_id, &len);
		if (!text)
			continue;
		place = mdl_item_put(index, places, hash_text(HASH_SEED, text, len), 0, sizeof(*place), &added);
		if (!place)
			return -ENOMEM;
		add_sat(&place->looks, l[i].count);
		if (!is_read(&l[i]))
			continue;
		add_sat(&place->waits, l[i].count);
		if (facts_tally_add(waits, text, len, &l[i]))
			return -ENOMEM;
	}
	return 0;
}

int cause_paging_of(const struct mdl *m, uint32_t tgid, uint32_t tid, struct cause_paging *p)
{
	const struct resident *r = memory_of(m, tgid);
	struct facts_tally waits = {.of = 0};
	struct hash index = {0};
	struct buf places = {0};
	const struct place *place;
	uint64_t looks = 0;
	bool many;
	size_t i;
	int err;

	*p = (struct cause_paging){.tgid = tgid};
	if (r)
		read_counts(r, p);
	err = count_places(m, p, tid, &waits, &index, &places);
	many = each_second(p->majflt, p->over_ns) >= FAULTS_MANY;
	for (i = 0; i < buf_count(&places, *place); i++) {
		place = buf_at(&places, const struct place, i);
		if (many ? place->waits > 0 : place->waits >= WAITS_LEAST && place->waits * WAITS_PART >= place->looks)
			add_sat(&looks,
				place->waits < place->looks / PLACE_LOOKS ? place->waits * PLACE_LOOKS : place->looks);
	}
	p->line = facts_tally_top(&waits);
	p->waits = waits.of >= LOOKS_LEAST ? facts_share((double)looks, (double)waits.of) : 0;
	facts_tally_fini(&waits);
	hash_fini(&index);
	buf_fini(&places);
	return err;
}

#define FAULTS_LEAST 20	       /* a second */
#define FAULT_BYTES  32768     /* that a fault reads at most, with the pages behind its own */
#define SWAPPED_PART 20	       /* of the memory, one part of so many is swapped out */
#define READ_LEAST   (1 << 20) /* bytes a second */

bool cause_is_swapping(const struct cause_paging *p)
{
	return each_second(p->majflt, p->over_ns) >= FAULTS_LEAST && p->read_bytes / FAULT_BYTES <= p->majflt &&
	       p->swapped_bytes >= p->resident_bytes / SWAPPED_PART && p->swapped_bytes;
}

/* Of the processes that the session profiles, the one that waits the most for its pages, or for its files. */
int make_paging(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct cause_paging one, *to;
	const struct resident *r;
	size_t i;
	int err = 0;

	(void)s;
	for (i = 0; (r = resident_at(m, i)) && !err; i++) {
		if (r->at[0].rank)
			continue;
		err = cause_paging_of(m, r->tgid, r->tgid == f->loop.tgid ? f->loop.tid : 0, &one);
		to = cause_is_swapping(&one)				      ? &f->cause.swapping
		     : each_second(one.read_bytes, one.over_ns) >= READ_LEAST ? &f->cause.reading
									      : NULL;
		if (to && one.waits > to->waits)
			*to = one;
	}
	return err;
}

double cause_of_worker(const struct facts *f, uint32_t tgid, double share)
{
	const double data = facts_share((double)f->loop.part_ns[MXBPF_PART_DATA], (double)f->loop.known_ns);
	unsigned k;

	if (!f->loop.tid || tgid == f->loop.tgid || tgid == f->late_tgid)
		return share;
	for (k = 0; k < FACTS_LOOPS_MAX; k++)
		if (f->loops[k].tgid == tgid) /* it has a loop of its own */
			return share;
	return facts_least(share, data + f->loader_share);
}

static void put_waits(const struct cause_paging *p, struct buf *b)
{
	buf_printf(b, ", which takes %.0f%% of its time", 100 * p->waits);
	if (p->line.looks)
		buf_printf(b, ", at %s", p->line.text);
}

static double swapping_share(const struct facts *f)
{
	return cause_of_worker(f, f->cause.swapping.tgid, f->cause.swapping.waits);
}

static void swapping_say(const struct facts *f, struct buf *b)
{
	const struct cause_paging *p = &f->cause.swapping;
	char bytes[24];

	buf_printf(b, "Process %" PRIu32 " swaps: %.0f times a second it waits for a page that was swapped out, %s/s",
		   p->tgid, each_second(p->majflt, p->over_ns),
		   fmt_bytes(whole(each_second(p->read_bytes, p->over_ns)), bytes));
	put_waits(p, b);
}

static void swapping_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_paging *p = &f->cause.swapping;
	char out[24], in[24];

	buf_printf(b, "%s of process %" PRIu32 " are swapped out, and %s are in memory%s",
		   fmt_bytes(p->swapped_bytes, out), p->tgid, fmt_bytes(p->resident_bytes, in),
		   p->line.looks ? "; " : "");
	rules_put_line(&p->line, b);
}

static double reading_share(const struct facts *f)
{
	return cause_of_worker(f, f->cause.reading.tgid, f->cause.reading.waits);
}

static void reading_say(const struct facts *f, struct buf *b)
{
	const struct cause_paging *p = &f->cause.reading;
	char bytes[24];

	buf_printf(b, "Process %" PRIu32 " reads from the disk, %s/s that the page cache does not have", p->tgid,
		   fmt_bytes(whole(each_second(p->read_bytes, p->over_ns)), bytes));
	put_waits(p, b);
}

static void reading_evidence(const struct facts *f, struct buf *b)
{
	const struct cause_paging *p = &f->cause.reading;

	rules_put_line(&p->line, b);
	if (each_second(p->majflt, p->over_ns) >= FAULTS_LEAST)
		buf_printf(b, "%s%.0f page faults a second read pages of mapped files", p->line.looks ? "; " : "",
			   each_second(p->majflt, p->over_ns));
}

/* clang-format off */
const struct finding_rule rules_paging[] = {
	{.key = "swapping", .full_gpu = true, .explains = "own_code data_wait slow_iterations disk_reads", .least = 0.05,
	 .share = swapping_share, .say = swapping_say, .evidence = swapping_evidence, .pid_at = offsetof(struct facts, cause.swapping.tgid),
	 .advice = "The memory of the machine, or of the job's control group, is too small, so the kernel writes pages to the swap device and "
		   "reads them again when they are needed. Give the job more memory, raise the group's limit, or let it need less: fewer "
		   "workers, a smaller batch, a memory-mapped file instead of a table in memory. Without swapping, this part of the time is gone."},
	{.key = "disk_reads", .full_gpu = true, .explains = "own_code data_wait slow_iterations", .least = 0.1,
	 .share = reading_share, .say = reading_say, .evidence = reading_evidence, .pid_at = offsetof(struct facts, cause.reading.tgid),
	 .advice = "The files do not stay in the page cache: they are larger than the memory that is left for it, the limit of the control group "
		   "is small, or something drops them (posix_fadvise, drop_caches, O_DIRECT). From the second epoch on, files that fit are read "
		   "from memory. Keep the data set in memory or on a faster disk, make it smaller (compressed, resized, fewer and larger "
		   "files), raise the limit of memory, or read ahead in more workers."},
	{.key = NULL},
};
/* clang-format on */
