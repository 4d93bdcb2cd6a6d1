/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests cuts that do not hold, on functions of this process: BPF's own counts reveal them, even if exceptions pass
 * through other functions, and their functions fall back to another way to find the end.
 */

#include "probed_calls.h"

#include <setjmp.h>
#include <ucontext.h>

#define TIMES  200
#define NSITES 7
#define NENDS  3 /* the first NENDS sites */
#define CFA(n) ((uint64_t)(n) << MXBPF_CUT_OFF_SHIFT)

/* Each function has a frame of 16 bytes and its cut at the nop. */
#define FUNCTION(name, body) __asm__(".text\n" name ":\npush %rbx\n" body "pop %rbx\nret\n")

FUNCTION("good", "good_cut: nop\n");
FUNCTION("left_by_another_way", "test %edi, %edi\njne 1f\nleft_cut: nop\n1: ");
FUNCTION("passed_again", "mov $3, %eax\n1: again_cut: nop\ndec %eax\njne 1b\n");
FUNCTION("calls_back", "call *%rdi\ncalled_cut: nop\n");
FUNCTION("aligns", "lea 16(%rsp), %rax\npush %rbp\nmov %rsp, %rbp\npush %rax\naligned_cut: nop\npop %rax\npop %rbp\n");

void good(int arg), aligns(int arg), left_by_another_way(int arg), passed_again(int arg), calls_back(void (*f)(void));
extern const char good_cut[], left_cut[], again_cut[], aligned_cut[], called_cut[];

__attribute__((noinline, noclone, noipa)) static void raise_it(void)
{
	__asm__ volatile("" ::: "memory");
}

static const struct mxbpf_row opens = {.action = MXBPF_ACT_OPEN, .end = MXBPF_END_CUT, .cls = MXBPF_CLASS_OPERATOR};
static const struct mxbpf_row ends = {.action = MXBPF_ACT_CLOSE_CUT};
static const struct mxbpf_row raises = {.action = MXBPF_ACT_RAISE};

static struct plan_site sites[NSITES];
static struct plan_name names[] = {{10, "1"}, {20, "2"}, {30, "3"}};
static uint64_t funcs[] = {0, 10, 20, 30};
static struct plan plan = {
	.lib = &self,
	.sites = {.data = (char *)sites},
	.names = {.data = (char *)names, .len = sizeof(names)},
	.funcs = {.data = (char *)funcs, .len = sizeof(funcs)},
};
static unsigned nfallen, nspans, nunwound;
static const char *fallen;
static uint64_t nbefore;

static void make_plan(void)
{
	const struct {
		const struct mxbpf_row *row;
		const void *at;
		uint64_t cookie;
	} all[NSITES] = {
		{&ends, good_cut, 1 | CFA(16)},		  {&ends, left_cut, 2 | CFA(16)},
		{&ends, again_cut, 3 | CFA(16)},	  {&opens, (void *)good, 1},
		{&opens, (void *)left_by_another_way, 2}, {&opens, (void *)passed_again, 3},
		{&raises, (void *)raise_it, 0}, /* last, so that it can be left out */
	};
	int i;

	for (i = 0; i < NSITES; i++)
		sites[i] = (struct plan_site){NULL, all[i].row, &self, offset_of(all[i].at), all[i].cookie};
}

static void take(void *ctx, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r = recs;

	for (; bytes; bytes -= r->size, r = (const void *)((const char *)r + r->size), nspans++)
		nunwound += !!(((const struct mxbpf_span *)r)->flags & MXBPF_SPAN_UNWOUND);
}

static void on_fallen(void *ctx, const char *name, uint64_t spans)
{
	nfallen++;
	fallen = name;
	nbefore = spans;
}

/* Profiles work() twice with the first n sites, and checks the cuts after each time. */
static void watch_sites(void (*work)(void), unsigned n)
{
	struct att_opts o = {.ring_bytes = 1u << 20};
	struct ring *ring = NULL;
	struct err e = {0};

	nfallen = nspans = nunwound = 0;
	plan.sites.len = n * sizeof(sites[0]);
	expect_session(!att_load(&plan, getpid(), &o, &att, &e) &&
			       !ring_start(att_ring_fd(att, ATT_CALLS), take, NULL, &ring, &e) &&
			       !att_attach(att, &plan, &plan.target, getpid(), &e),
		       &e);
	att_activate(att, true);
	work();
	plan.sites.len = NSITES * sizeof(sites[0]);
	att_check_cuts(att, &plan, on_fallen, NULL);
	work();
	att_check_cuts(att, &plan, on_fallen, NULL);
	att_detach(att);
	ring_stop(ring);
	ring_free(ring);
	att_free(att);
}

static void watch(void (*work)(void), bool see_raises)
{
	watch_sites(work, NSITES - !see_raises);
}

static void honest(void)
{
	int i;

	for (i = 0; i < TIMES; i++)
		good(i);
}

static void align(void)
{
	int i;

	for (i = 0; i < TIMES; i++)
		aligns(i);
}

__attribute__((noinline, noclone, noipa)) static void good_deeper(int arg)
{
	good(arg);
	__asm__ volatile("" ::: "memory");
}

static void leave_and_go_deeper(void)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		left_by_another_way(i % 10 == 0);
		good_deeper(i);
	}
}

static void leave_otherwise(void)
{
	int i;

	for (i = 0; i < TIMES; i++) {
		left_by_another_way(i % 10 == 0);
		good(i);
	}
}

static void pass_again(void)
{
	int i;

	for (i = 0; i < TIMES; i++)
		passed_again(i);
}

static jmp_buf back;

static void raise_and_leave(void)
{
	raise_it();
	longjmp(back, 1);
}

static void leave_only(void)
{
	longjmp(back, 1);
}

static void throw_through(void (*thrower)(void))
{
	volatile int i;

	for (i = 0; i < TIMES; i++) {
		if (!setjmp(back))
			calls_back(thrower);
		good(i);
	}
}

static void throw_it(void)
{
	throw_through(raise_and_leave);
}

static void jump(void)
{
	throw_through(leave_only);
}

static char stacks[2][64 << 10];
static ucontext_t here, there[2];
static unsigned to, nswitches;

static void go_there(void)
{
	swapcontext(&here, &there[to]);
	nswitches++;
}

static void go_back(void)
{
	swapcontext(&there[to], &here);
}

static void enter(void (*work)(void))
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		getcontext(&there[i]);
		there[i].uc_stack = (stack_t){.ss_sp = stacks[i], .ss_size = sizeof(stacks[i])};
		makecontext(&there[i], work, 0);
	}
}

static void call_there(void)
{
	for (;;) {
		calls_back(go_back);
		good(0);
	}
}

/* Leaves calls for another stack in the middle: one time the other stack's call goes on later, one time it begins. */
static void change_stacks(void)
{
	unsigned i;

	enter(call_there);
	for (i = 0; i < TIMES; i++) {
		to = i % 2;
		calls_back(go_there);
		good(i);
	}
}

/*
 * A change in the middle of a call with a return probe ends the process with SIGILL: the kernel takes the call for one
 * that a jump has left. No runtime calls the program from such a function.
 */
static const struct plan_probe returning = {.returns = true};

static void call_and_go_back(void)
{
	for (;; go_back())
		good(0);
}

static void change_between_calls(void)
{
	unsigned i;

	enter(call_and_go_back);
	for (i = 0; i < TIMES; i++) {
		to = i % 2;
		go_there();
		good(i);
	}
}

int main(void)
{
	struct err e = {0};

	if (!att_pick("uprobe_multi", &e)) {
		TEST("cuts check themselves # SKIP")
		{
			printf("# %s\n", e.why);
		}
		UNIT_MAIN_END;
	}
	make_plan();
	TEST("a cut that holds stays in use")
	{
		watch(honest, true);
		CHECK(!nfallen && nspans == 2 * TIMES && !nunwound);
	}
	TEST("a cut that is passed before the start of its function is probed stays in use")
	{
		watch_sites(honest, NENDS);
		CHECK(!nfallen && !nspans);
	}
	TEST("a function that can return without passing its cut falls back once, and none of its calls is lost")
	{
		watch(leave_otherwise, true);
		CHECK(nfallen == 1 && !strcmp(fallen, "2") && nbefore == TIMES);
		CHECK(nspans == 4 * TIMES && nunwound == TIMES / 10); /* none after the fallback */
	}
	TEST("after a fallback, calls end with the next event at any stack depth")
	{
		watch(leave_and_go_deeper, true);
		CHECK(nfallen == 1 && !strcmp(fallen, "2") && nspans == 4 * TIMES);
	}
	TEST("a missed cut causes no fallback if exceptions are not probed and the cut is passed at other times")
	{
		watch(leave_otherwise, false);
		CHECK(!nfallen);
	}
	TEST("a cut that is passed more than once per call causes a fallback of its function only")
	{
		watch(pass_again, true);
		CHECK(nfallen == 1 && !strcmp(fallen, "3") && nbefore == TIMES && nspans >= 2 * TIMES - 1);
	}
	sites[1] = (struct plan_site){NULL, &ends, &self, offset_of(aligned_cut),
				      2 | MXBPF_CUT_RBP | MXBPF_CUT_AT | CFA(-8)};
	sites[4] = (struct plan_site){NULL, &opens, &self, offset_of((void *)aligns), 2};
	TEST("a cut in a function that aligns its stack works with a frame address stored on the stack")
	{
		watch(align, true);
		CHECK(!nfallen && nspans == 2 * TIMES && !nunwound);
	}
	/* The exceptions leave a function whose cut is never passed. */
	sites[1] = (struct plan_site){NULL, &ends, &self, offset_of(left_cut), 0};
	sites[4] = (struct plan_site){NULL, &opens, &self, offset_of((void *)calls_back), 2};
	TEST("calls left by an exception do not cause a fallback")
	{
		watch(throw_it, true);
		CHECK(!nfallen && nunwound == 2 * TIMES);
	}
	TEST("calls left by longjmp without an exception cause a fallback")
	{
		watch(jump, true);
		CHECK(nfallen == 1 && !strcmp(fallen, "2") && nbefore == TIMES && nunwound == TIMES);
	}
	sites[1] = (struct plan_site){NULL, &ends, &self, offset_of(called_cut), 2 | CFA(16)};
	TEST("calls in which a thread changes its stack each have a record; their function falls back")
	{
		nswitches = 0;
		watch(change_stacks, true);
		CHECK(nfallen == 1 && !strcmp(fallen, "2") && nbefore == 2 * TIMES);
		CHECK(nspans == 8 * TIMES - 4); /* the other stacks' first turn in each session has no call of good() */
		CHECK(nswitches == 2 * TIMES);
	}
	sites[0] = (struct plan_site){&returning, &ends, &self, offset_of((void *)good), 1 | MXBPF_CUT_MERGED};
	TEST("return probes harm no thread that changes its stack between calls, and each call is recorded")
	{
		nswitches = 0;
		watch(change_between_calls, true);
		CHECK(nswitches == 2 * TIMES && nspans == 4 * TIMES && !nunwound && !nfallen);
	}
	UNIT_MAIN_END;
}
