// SPDX-License-Identifier: Apache-2.0
/*
 * The shared object inside a target. mxbpf loads it and calls mxbpf_agent_start(); nothing runs before. It never
 * blocks and allocates only its shared memory. Its code stays mapped, because the runtime may call it late.
 */
#include "agent.h"
#include "cupti_tape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A newer glibc has other versions of these functions for new programs. These versions are in every glibc. */
__asm__(".symver pthread_key_create,pthread_key_create@GLIBC_2.2.5");
__asm__(".symver pthread_setspecific,pthread_setspecific@GLIBC_2.2.5");
__asm__(".symver clock_gettime,clock_gettime@GLIBC_2.17");

#define VISIBLE __attribute__((visibility("default")))
#define PAGE	4096

/* mxbpf fills this in in the file, so it must not be in .bss. */
VISIBLE struct mxbpf_agent_config mxbpf_agent_config __attribute__((section(".data"))) = {0};
VISIBLE volatile uint16_t mxbpf_agent_switch __attribute__((section(".data"))) = 0;

static struct agent_gate closed;
struct agent_gate *agent_gate = &closed;
__thread struct mxbpf_agent_slot *agent_slot __attribute__((tls_model("initial-exec")));
__thread struct agent_gate *agent_slot_gate __attribute__((tls_model("initial-exec")));
static pthread_key_t at_exit;
/*
 * `family` points to the agent's memory. In a forked child it first points to the parent's memory, and only the first
 * page of that is mapped there. As soon as the child has memory of its own, `family` points to this memory, and
 * `parent` points to the page of the parent.
 */
static struct mxbpf_agent_shared *family, *parent;

/*
 * The probe is at the second instruction of this function, which must not have five bytes: Linux 6.18 to 7.2 would
 * replace it by a call of a page that a forked child does not inherit. The function keeps to the normal calling
 * convention.
 */
VISIBLE void mxbpf_agent_bell(const struct mxbpf_agent_batch *b);
__asm__(".text\n"
	".p2align 4\n"
	".globl mxbpf_agent_bell\n"
	".type mxbpf_agent_bell, @function\n"
	"mxbpf_agent_bell:\n"
	".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"
	"nop\n"
	"ret\n"
	".size mxbpf_agent_bell, .-mxbpf_agent_bell\n");

long agent_call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

uint64_t agent_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t agent_ran(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool agent_is_pid(long pid)
{
	return pid == agent_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* ---- handing over */

static int file = -1; /* batches go into a file, because there is no BPF */
static uint64_t file_end;

bool agent_is_heard(void)
{
	return mxbpf_agent_switch || file >= 0;
}

/* The memory that mxbpf shares comes first in the file, then the batches as they are. */
static void write_batch(const struct mxbpf_agent_batch *b)
{
	const size_t each = b->what == MXBPF_AGENT_GPU ? sizeof(b->gpu[0]) : sizeof(b->calls[0]);
	const uint64_t bytes = MXBPF_AGENT_BATCH_HEAD + b->ncalls * each;
	const uint64_t at = __atomic_fetch_add(&file_end, bytes, __ATOMIC_RELAXED);

	agent_call(SYS_pwrite64, file, (long)b, (long)bytes, (long)at, 0, 0);
}

void agent_hand_over(const struct mxbpf_agent_batch *b)
{
	if (file >= 0)
		write_batch(b);
	else if (mxbpf_agent_switch)
		mxbpf_agent_bell(b);
}

/* Keeps a batch in the shared memory, because mxbpf has not attached to the bell of this forked child yet. */
static void __attribute__((noinline, cold)) spill(struct mxbpf_agent_shared *s, const struct mxbpf_agent_batch *b)
{
	uint32_t i = __atomic_fetch_add(&s->spilled, 1, __ATOMIC_RELAXED);

	if (i >= MXBPF_AGENT_SPILL)
		return;
	memcpy(&s->spill[i], b, MXBPF_AGENT_BATCH_HEAD + b->ncalls * sizeof(b->calls[0]));
	__atomic_store_n(&s->is_spilled[i], 1, __ATOMIC_RELEASE);
}

static void ring(const struct mxbpf_agent_batch *b)
{
	struct mxbpf_agent_shared *s = agent_gate->shared;

	if (__atomic_load_n(&s->unheard, __ATOMIC_ACQUIRE))
		spill(s, b);
	else
		mxbpf_agent_bell(b);
}

/* ---- threads */

/* Runs at the end of a thread: hands over its calls and frees its slot. */
static void leave_slot(void *slot)
{
	struct mxbpf_agent_shared *s = agent_shared();
	struct mxbpf_agent_slot *t = slot;

	if (!s || !t || t != agent_own_slot()) /* a forked child has the key but not the memory */
		return;
	agent_slot = NULL;
	if (t->batch.ncalls && mxbpf_agent_switch)
		ring(&t->batch);
	__atomic_store_n(&t->depth, 0, __ATOMIC_RELAXED); /* another thread may look for a call that it ends */
	t->batch.ncalls = 0;
	__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);
}

struct mxbpf_agent_slot *agent_take_slot(struct mxbpf_agent_shared *s)
{
	uint32_t tid = (uint32_t)agent_call(SYS_gettid, 0, 0, 0, 0, 0, 0), nobody, i;
	struct mxbpf_agent_slot *t;

	for (i = 0; i < MXBPF_AGENT_THREADS; i++) {
		t = &s->slots[i];
		nobody = 0;
		if (__atomic_load_n(&t->tid, __ATOMIC_RELAXED) ||
		    !__atomic_compare_exchange_n(&t->tid, &nobody, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		t->uses++;
		t->batch.slot_use = (uint64_t)i << 32 | t->uses;
		t->batch.seq = 0;
		t->last_ns = 0;
		agent_slot = t;
		agent_slot_gate = agent_gate;
		pthread_setspecific(at_exit, t);
		return t;
	}
	return NULL;
}

struct mxbpf_agent_slot *agent_my_slot(struct mxbpf_agent_shared *s)
{
	struct mxbpf_agent_slot *t = agent_own_slot();

	t = t ? t : agent_take_slot(s);

	if (!t)
		__atomic_fetch_add(&s->no_slot, 1, __ATOMIC_RELAXED);
	return t;
}

void __attribute__((cold)) agent_orphan(void)
{
	__atomic_fetch_add(&parent->orphans, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&agent_gate->shared->unheard_calls, 1, __ATOMIC_RELAXED);
}

void agent_batch_full(struct mxbpf_agent_slot *t)
{
	struct mxbpf_agent_batch *b = &t->batch;

	ring(b);
	__atomic_store_n(&b->ncalls, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&b->seq, b->seq + 1, __ATOMIC_RELEASE);
}

/* ---- names */

/* Compares two texts that may be cut. */
static bool are_same(const char *kept, const char *text)
{
	return !strncmp(kept, text, MXBPF_AGENT_NAME_BYTES - 1);
}

static uint32_t add_text(struct mxbpf_agent_shared *s, const char *text, uint32_t len)
{
	uint32_t at = __atomic_load_n(&s->texts_len, __ATOMIC_RELAXED), i;

	do {
		if (at + len + 2 > MXBPF_AGENT_TEXTS)
			return 0;
	} while (!__atomic_compare_exchange_n(&s->texts_len, &at, at + len + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	at++; /* the first byte is not used */
	for (i = 0; i < len; i++)
		s->texts[at + i] = text[i];
	s->texts[at + len] = '\0';
	return at;
}

/*
 * Returns the offset of a name's text. Compares content, because the program may free a name and put another one at its
 * address.
 */
static uint32_t intern(struct mxbpf_agent_shared *s, const char *text)
{
	uint32_t len, at, was, i;
	uint64_t h = 0xcbf29ce484222325ull;

	for (len = 0; len < MXBPF_AGENT_NAME_BYTES - 1 && text[len]; len++)
		h = (h ^ (uint8_t)text[len]) * 0x100000001b3ull;
	h ^= h >> 32;
	for (i = 0, at = 0; i < MXBPF_AGENT_NAMES; i++) {
		uint32_t *place = &s->names[(h + i) & (MXBPF_AGENT_NAMES - 1)];

		was = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		if (!was) {
			at = at ? at : add_text(s, text, len);
			if (!at)
				break;
			if (__atomic_compare_exchange_n(place, &was, at, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
				return at;
		}
		if (are_same(s->texts + was, text))
			return was;
	}
	__atomic_fetch_add(&s->no_name, 1, __ATOMIC_RELAXED);
	return 0;
}

/*
 * Compares a text with one that is kept and ends within `bytes`. It reads up to 7 bytes behind the end of a shorter
 * text, but no other page.
 */
static inline bool is_kept(const char *kept, const char *text, uint32_t bytes)
{
	uint64_t a, b;
	uint32_t i = 0;

	if ((uintptr_t)text % PAGE + bytes > PAGE || bytes < sizeof(a))
		return are_same(kept, text);
	for (; i + sizeof(a) < bytes; i += sizeof(a)) {
		memcpy(&a, kept + i, sizeof(a));
		memcpy(&b, text + i, sizeof(b));
		if (a != b)
			return false;
	}
	memcpy(&a, kept + bytes - sizeof(a), sizeof(a));
	memcpy(&b, text + bytes - sizeof(b), sizeof(b));
	return a == b;
}

static uint32_t __attribute__((noinline))
learn(struct mxbpf_agent_shared *s, struct mxbpf_agent_cached *c, const char *text)
{
	c->name = intern(s, text);
	c->bytes = c->name ? (uint32_t)strlen(s->texts + c->name) + 1 : 0;
	return c->name;
}

uint32_t agent_name(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const char *text)
{
	uint64_t address = (uint64_t)(uintptr_t)text;
	struct mxbpf_agent_cached *c = &t->cached[(address ^ address >> 9) & (MXBPF_AGENT_CACHED - 1)];

	if (!text)
		text = "";
	if (c->address == address && c->name && is_kept(s->texts + c->name, text, c->bytes))
		return c->name;
	c->address = address;
	return learn(s, c, text);
}

/* ---- start */

static void *map(size_t bytes, int flags)
{
	long at = agent_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	return at < 0 && at > -PAGE ? NULL : (void *)at;
}

/*
 * A page of the file for which the disk has no room would kill the process when the agent writes to it. So the parts
 * that the agent uses without BPF get their room at once. Returns -errno if there is none. A file system that cannot
 * promise room is used as it is.
 */
static long reserve(size_t from, size_t to)
{
	const long err = agent_call(SYS_fallocate, file, 0, (long)from, (long)(to - from), 0, 0);

	return err == -ENOSPC || err == -EDQUOT || err == -EFBIG ? err : 0;
}

static long map_shared(struct mxbpf_agent_shared **out)
{
	const size_t bytes = (sizeof(struct mxbpf_agent_shared) + PAGE - 1) & ~(size_t)(PAGE - 1);
	long at;

	if (file < 0) {
		*out = map(bytes, MAP_SHARED | MAP_NORESERVE);
		return *out ? 0 : -ENOMEM;
	}
	at = agent_call(SYS_ftruncate, file, (long)bytes, 0, 0, 0, 0);
	at = at ? at : reserve(0, PAGE);
	at = at ? at : reserve(offsetof(struct mxbpf_agent_shared, gpu), bytes);
	if (at)
		return at;
	file_end = bytes;
	at = agent_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	*out = (void *)at;
	return at < 0 && at > -PAGE ? at : 0;
}

/*
 * Creates the shared memory. A forked child does not inherit it, and finds no address of it in its gate. from: in a
 * forked child, the first page of its parent's memory; NULL: none.
 */
static int open_shared(struct mxbpf_agent_shared *from)
{
	struct agent_gate *gate = map(PAGE, MAP_PRIVATE);
	struct mxbpf_agent_shared *s = NULL;
	long err = map_shared(&s);

	err = err ? err : gate ? 0 : -ENOMEM;
	err = err ? err : agent_call(SYS_madvise, (long)s + PAGE, sizeof(*s) - PAGE, MADV_DONTFORK, 0, 0, 0);
	if (err)
		return (int)err;
	err = agent_call(SYS_madvise, (long)gate, PAGE, MADV_WIPEONFORK, 0, 0, 0);
	if (err == -EINVAL)
		gate->pid = agent_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	else if (err)
		return (int)err;
	s->magic = MXBPF_AGENT_MAGIC;
	s->version = MXBPF_AGENT_VERSION;
	s->pid = (uint32_t)agent_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	s->registered = (uint32_t)mxbpf_agent_config.registered; /* a child has its parent's callbacks */
	if (from) {
		s->numbers = from->numbers;
		s->memory = from->memory;
		s->details = from->details;
		s->children = s->unheard = 1;
		s->since_ns = from->since_ns;
		parent = from;
	}
	gate->shared = s;
	agent_gate = gate;
	family = s;
	mxbpf_agent_config.shared = (uint64_t)(uintptr_t)s;
	return 0;
}

/* If a thread forks while another one is in this function, the agent does not start by itself in the child. */
struct mxbpf_agent_shared *agent_inherit(void)
{
	static uint32_t starting;
	struct mxbpf_agent_shared *from = family;
	uint32_t nobody = 0;

	if (!from || !mxbpf_agent_switch || !mxbpf_agent_config.registered || !from->children || !from->since_ns)
		return NULL;
	if (__atomic_compare_exchange_n(&starting, &nobody, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		if (!agent_shared() && !open_shared(from))
			__atomic_store_n(&starting, 0, __ATOMIC_RELEASE);
	}
	if (!agent_shared())
		__atomic_fetch_add(&from->orphans, 1, __ATOMIC_RELAXED);
	return agent_shared();
}

static const struct agent_module *const modules[] = {&agent_record_function, &agent_gpu};

/*
 * mxbpf calls this in a thread that is stopped at the entry of a function. A second call in the same process
 * registers the callbacks again after a stop. In a child that was forked since then, the agent starts anew.
 */
VISIBLE long mxbpf_agent_start(uint64_t wanted);
long mxbpf_agent_start(uint64_t wanted)
{
	static bool has_key;
	unsigned i;
	int err = 0;

	if (!has_key)
		err = -pthread_key_create(&at_exit, leave_slot);
	has_key = !err;
	if (!err && !agent_shared()) {
		err = open_shared(NULL);
	}
	for (i = 0; !err && i < sizeof(modules) / sizeof(modules[0]); i++)
		if (wanted & modules[i]->bit)
			err = modules[i]->start(wanted);
	mxbpf_agent_config.error = err;
	return err;
}

/* ---- without BPF */

/* Writes "PREFIX.PID". Each process has a file of its own, because children inherit the environment. */
static bool file_name(char path[MXBPF_AGENT_FILE_BYTES], const char *prefix)
{
	long pid = agent_call(SYS_getpid, 0, 0, 0, 0, 0, 0), rest;
	size_t len = strlen(prefix), digits = 1;

	for (rest = pid; rest >= 10; rest /= 10)
		digits++;
	if (len + digits + 2 > MXBPF_AGENT_FILE_BYTES)
		return false;
	memcpy(path, prefix, len);
	path[len] = '.';
	for (path[len + 1 + digits] = '\0'; digits; pid /= 10)
		path[len + digits--] = (char)('0' + pid % 10);
	return true;
}

/* Parses "LAUNCHES:REPLAY:PATTERN", which mxbpf has written. */
static void want_metrics(struct mxbpf_gpu_shared *g, const char *text)
{
	char *end;

	g->metrics.each = (uint32_t)strtoul(text, &end, 10);
	g->metrics.replay = *end == ':' ? (uint32_t)strtoul(end + 1, &end, 10) : 0;
	if (*end != ':')
		return;
	strncpy(g->metrics.pattern, end + 1, sizeof(g->metrics.pattern) - 1);
	g->metrics.active = 1;
	g->want |= MXBPF_GPU_WANT_METRICS;
}

/*
 * CUDA's driver loads the library that CUDA_INJECTION64_PATH names, and calls this when the process initialises CUDA.
 * MXBPF_AGENT_FILE is the beginning of the name of the file for the records. Without it this does nothing, because a
 * child of a process with mxbpf may have inherited the first variable.
 */
VISIBLE int InitializeInjection(void);
int InitializeInjection(void)
{
	const char *prefix = getenv("MXBPF_AGENT_FILE"), *cupti = getenv("MXBPF_CUPTI"),
		   *tape = getenv("MXBPF_AGENT_TAPE"), *metrics = getenv("MXBPF_KERNEL_METRICS");
	struct mxbpf_agent_failed failed = {.magic = MXBPF_AGENT_FAILED};
	struct mxbpf_agent_shared *s;
	struct mxbpf_gpu_shared *g;
	char path[MXBPF_AGENT_FILE_BYTES];

	if (!prefix || file >= 0 || agent_gate->shared || !file_name(path, prefix))
		return 1;
	file = (int)agent_call(SYS_open, (long)path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0, 0);
	if (file < 0)
		return 1;
	failed.error = (uint32_t)-mxbpf_agent_start(0);
	if (failed.error) {
		agent_call(SYS_pwrite64, file, (long)&failed, sizeof(failed), 0, 0, 0);
		return 1;
	}
	if (tape && file_name(path, tape)) /* for tests, see cupti_tape.h */
		cupti_tape_open(path);
	s = agent_shared();
	if (!s)
		return 1;
	g = &s->gpu;
	if (cupti)
		strncpy(g->library, cupti, sizeof(g->library) - 1);
	g->want = MXBPF_GPU_WANT_KERNELS | MXBPF_GPU_WANT_CALLS | MXBPF_GPU_WANT_DRIVER;
	if (metrics)
		want_metrics(g, metrics);
	agent_gpu_hold(g);
	mxbpf_agent_start(MXBPF_AGENT_MODULE_GPU);
	return 1;
}
