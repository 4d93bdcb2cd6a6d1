// SPDX-License-Identifier: Apache-2.0

#include "feature/sched/sched.h"
#include "records.h"
#include "feature/sched/words.h"

static struct mxbpf_sched *put_sched(struct buf *b, uint64_t left_ns, uint64_t woken_ns, uint64_t back_ns, int nslices)
{
	size_t size = sizeof(struct mxbpf_sched) + nslices * sizeof(struct mxbpf_sched_slice);
	struct mxbpf_sched *r = buf_add(b, size);

	memset(r, 0, size);
	r->h = (struct mxbpf_rec){MXBPF_SCHED, (uint16_t)size, 77, left_ns};
	r->woken_ns = woken_ns;
	r->back_ns = back_ns;
	r->tid = 78;
	r->span_name_id = 1;
	r->span_cls = MXBPF_CLASS_OPERATOR;
	r->syscall = -1;
	r->nslices = (uint8_t)nslices;
	return r;
}

static uint64_t sum_ns(const struct mdl *m, enum mxbpf_sched_what what, const char *comm)
{
	const struct sched_row *a;
	uint64_t sum = 0;
	size_t n, i;

	a = sched_rows(m, &n);
	for (i = 0; i < n; i++)
		if (a[i].what == what && !strncmp(a[i].comm, comm, sizeof(a[i].comm)))
			sum += a[i].total_ns;
	return sum;
}

static enum mxbpf_sched_what cause(enum mxbpf_sched_state state, int nr, unsigned flags)
{
	const struct mxbpf_sched r = {.state = (__u8)state, .syscall = nr, .flags = (__u8)flags};

	return sched_cause(&r);
}

int main(void)
{
	struct mdl *m = mdl_new(), *again = mdl_new();
	FREED(buf_fini) struct buf b = {0};
	struct mxbpf_sched *r;

	TEST("the cause of a sleep follows from the system call, the thread state and the kernel's I/O-wait flag")
	{
		CHECK(cause(MXBPF_SCHED_RUNNABLE, 202, 0) == MXBPF_SCHED_WAITED);
		CHECK(cause(MXBPF_SCHED_SLEEPING, 202, 0) == MXBPF_SCHED_FUTEX);
		CHECK(cause(MXBPF_SCHED_SLEEPING, 230, 0) == MXBPF_SCHED_NAP);
		CHECK(cause(MXBPF_SCHED_DISK, 0, 0) == MXBPF_SCHED_IO);
		CHECK(cause(MXBPF_SCHED_SLEEPING, 0, 0) == MXBPF_SCHED_OTHER); /* reading from a pipe */
		CHECK(cause(MXBPF_SCHED_DISK, 9, MXBPF_SCHED_IOWAIT) == MXBPF_SCHED_IO);
		CHECK(cause(MXBPF_SCHED_DISK, -1, MXBPF_SCHED_IOWAIT) == MXBPF_SCHED_FAULT);
		CHECK(cause(MXBPF_SCHED_STOPPED, -1, 0) == MXBPF_SCHED_OTHER);
	}
	TEST("the times of all causes of a run-queue wait add up to the wait, including slices that were not kept")
	{
		r = put_sched(&b, 1000, 1000, 2000, 2);
		r->flags = MXBPF_SCHED_MORE;
		r->slices[0] = (struct mxbpf_sched_slice){1500, 2000, 5, 5, "hog"};
		r->slices[1] = (struct mxbpf_sched_slice){1200, 1500, 78, 77, "mine"};
		CHECK(!feed(m, &b));
		CHECK(sum_ns(m, MXBPF_SCHED_WAITED, "") == 1000);
		CHECK(sum_ns(m, MXBPF_SCHED_KEPT_BY, "hog") == 500);
		CHECK(sum_ns(m, MXBPF_SCHED_KEPT_BY, "mine") == 300);
		CHECK(sum_ns(m, MXBPF_SCHED_KEPT_BY, "[not kept]") == 200);
	}
	TEST("a wake-up by a disk or a timer names no thread, and one by a thread has the thread's name")
	{
		r = put_sched(&b, 3000, 3100, 3100, 0);
		r->state = MXBPF_SCHED_DISK;
		r->flags = MXBPF_SCHED_IOWAIT;
		r->syscall = 0;
		r->by_tid = 9;
		strcpy(r->by_comm, "passer-by");
		r = put_sched(&b, 4000, 4070, 4070, 0);
		r->state = MXBPF_SCHED_SLEEPING;
		r->syscall = 202;
		r->by_tid = 9;
		strcpy(r->by_comm, "holder");
		CHECK(!feed(m, &b));
		CHECK(sum_ns(m, MXBPF_SCHED_IO, "") == 100 && sum_ns(m, MXBPF_SCHED_FUTEX, "") == 70);
		CHECK(sum_ns(m, MXBPF_SCHED_WOKEN_BY, "passer-by") == 0 &&
		      sum_ns(m, MXBPF_SCHED_WOKEN_BY, "holder") == 70);
	}
	TEST("emitted records give an equal model, in which time between slices is no time outside of all calls")
	{
		const struct sched_row *a;
		uint64_t ns[2] = {0};
		size_t n, i;

		for (i = 0; i < 2; i++) {
			r = put_sched(&b, 5000, 5000, 5010 + i, 0);
			r->span_name_id = r->span_cls = 0;
			r->flags = i ? MXBPF_SCHED_BETWEEN : 0;
		}
		CHECK(!feed(m, &b));
		CHECK(!mdl_emit(m, &b) && !feed(again, &b));
		a = sched_rows(again, &n);
		for (i = 0; i < n; i++)
			ns[a[i].between] += a[i].cls ? 0 : a[i].total_ns;
		CHECK(ns[0] == 10 && ns[1] == 11);
		CHECK(sum_ns(again, MXBPF_SCHED_KEPT_BY, "hog") == 500 && sum_ns(again, MXBPF_SCHED_FUTEX, "") == 70);
	}
	TEST("a record with more slices than its size allows, or with a negative duration, is refused")
	{
		put_sched(&b, 1000, 1000, 2000, 1)->nslices = 2;
		CHECK(feed(m, &b));
		put_sched(&b, 1000, 900, 2000, 0);
		CHECK(feed(m, &b));
	}
	mdl_free(m);
	mdl_free(again);
	UNIT_MAIN_END;
}
