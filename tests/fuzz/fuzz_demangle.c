/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangles hostile names: the input itself if it begins with "_", and otherwise a piece of the grammar for each byte.
 * The library is not instrumented, so pieces find its deep corners faster than single characters. What is looked at are
 * the promises: an answer in time, no text beyond the limit, and a process that is ready for the next name after any
 * name. The process that demangles shares its counters with this one, so its lines count, and what a sanitizer finds in
 * it ends it. An input that begins with 0xFF is what such a process answers after a name has taken it over.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

static int start_process(int (*fn)(void *), void *stack, int flags, void *arg);
static pid_t wait_process(pid_t pid, int *status, int options);

/* The state of the demangler must be reset when its processes are used up, so this program has one of its own. */
#define demangle       fuzzed_demangle
#define demangle_start fuzzed_demangle_start
#define clone	       start_process
#define waitpid	       wait_process
#include "../../user/base/demangle.c"
#undef clone
#undef waitpid

#define PLAIN "_ZN2at3addERKNS_6TensorE"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pieces[] = {
	"S_",	 "S0_",	       "S1_",	     "S2_",	 "S3_",	    "S9_",    "SA_",  "SZ_",	  "T_",
	"T0_",	 "T1_",	       "TL0__",	     "I",	 "J",	    "E",      "EE",   "N",	  "Z",
	"X",	 "L",	       "Li1E",	     "Lb1E",	 "L_Z1fvE", "1p",     "1a",   "3foo",	  "S_I",
	"P",	 "R",	       "O",	     "K",	 "F",	    "A3_",    "M",    "Dp",	  "sp",
	"cv",	 "cvT_I",      "N1acvT_I",   "i",	 "v",	    "DTE",    "DT",   "dt",	  "fp_",
	"fL0p_", "srT_1x",     "sr",	     "on",	 "gs",	    "cl",     "pl",   "tl",	  "il",
	"nw",	 "_",	       "C1",	     "D0",	 "UlvE_",   "UlT_E_", "Ut_",  "B3abi",	  "St",
	"Sa",	 "sZ",	       "fl",	     "fR",	 "DO",	    "Do",     "Dv4_", "U3vecIiE", "W3modE",
	"GTt",	 "S_IS0_S0_E", "S_IS1_S1_E", "S_IT_T_E", "JDpT_E",  "DpRT_",
};

/* ---- the other process */

static volatile int *found; /* shared: the process has made a forbidden system call */

/* The library may use up its stack, which must not become a report of a sanitizer. */
static int (*process)(void *);
static int without_handlers(void *arg)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
	unsigned i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_DFL);
	return process(arg);
}

static int start_process(int (*fn)(void *), void *stack, int flags, void *arg)
{
	process = fn;
	return clone(without_handlers, stack, flags, arg);
}

/* A sanitizer that reports makes a system call that the process must not make, so its report is not seen. */
static pid_t wait_process(pid_t pid, int *status, int options)
{
	const pid_t ended = waitpid(pid, status, options);

	if (ended > 0 && status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGSYS)
		*found = 1;
	return ended;
}

/* Makes a section of this program memory that its children share. Its first and last page have other data, too. */
__attribute__((no_sanitize("address", "undefined"))) static void share(uintptr_t from, uintptr_t to)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uintptr_t begin = from / page * page, bytes = (to + page - 1) / page * page - begin;
	volatile char *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      *at = (volatile char *)begin;
	size_t i;

	if (copy == MAP_FAILED)
		abort();
	for (i = 0; i < bytes; i++)
		copy[i] = at[i];
	if (mmap((void *)begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		abort();
	for (i = 0; i < bytes; i++)
		at[i] = copy[i];
	munmap((void *)(uintptr_t)copy, bytes);
}

/* In assembler, because the compiler declares these symbols itself. */
__asm__(".pushsection .data.counters, \"aw\"\n"
	"counters: .quad __start___llvm_prf_cnts, __stop___llvm_prf_cnts, __start___sancov_cntrs, "
	"__stop___sancov_cntrs\n"
	".popsection");
extern const uintptr_t counters[4];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	share(counters[0], counters[1]);
	share(counters[2], counters[3]);
	found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (found == MAP_FAILED)
		abort();
	return 0;
}

static void refill(void)
{
	if (client.socket >= 0)
		return;
	waitpid(client.keeper, NULL, 0);
	client.started = false;
}

static void check(const char *name)
{
	char *text = demangle(name);

	if (client.waits) { /* the machine stood still for a second; a name that hangs does so again */
		client.waits = 0;
		free(text);
		refill();
		text = demangle(name);
	}
	if (client.waits || *found || (text && strlen(text) > DEMANGLE_TEXT_BYTES))
		abort();
	free(text);
}

/* ---- its answers */

/* The head of an answer in an input: the number (0: right, 1: none, else wrong), the text's bytes (0: right), both. */
struct lie {
	uint8_t number, bytes;
	uint16_t len;
};

/* Returns true if one of the answers is right. */
static bool send_lies(int to, const uint8_t *data, size_t size)
{
	struct answer a = {0};
	bool right = false;
	struct lie l;
	size_t n;

	for (; size >= sizeof(l); data += n, size -= n) {
		memcpy(&l, data, sizeof(l));
		data += sizeof(l);
		size -= sizeof(l);
		n = l.len % (sizeof(a.text) + ANSWER_HEAD + 1);
		a.number = l.number < 2 ? (client.number + 1) * !l.number : client.number + l.number;
		a.bytes = l.bytes ? (uint32_t)(n - ANSWER_HEAD) + l.bytes : (uint32_t)(n - ANSWER_HEAD);
		memset(a.text, 'a', sizeof(a.text));
		memcpy(a.text, data, size < sizeof(a.text) ? size : sizeof(a.text));
		right |= !l.number && !l.bytes && n > ANSWER_HEAD;
		send(to, &a, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		n = size < 8 ? size : 8;
	}
	return right;
}

/* The process is gone behind its answers, so none has to be waited for. */
static void check_answers(const uint8_t *data, size_t size)
{
	int ends[2];
	bool right;
	char *text;

	refill();
	if (client.started && client.socket >= 0) { /* the honest one */
		give_up();
		waitpid(client.keeper, NULL, 0);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		abort();
	client.started = true;
	client.socket = ends[0];
	right = send_lies(ends[1], data, size);
	shutdown(ends[1], SHUT_WR);
	text = demangle(PLAIN);
	if (text && (!right || strlen(text) > DEMANGLE_TEXT_BYTES))
		abort();
	free(text);
	close(ends[1]);
	if (client.socket >= 0)
		close(client.socket);
	client.socket = -1;
	client.started = false;
	client.waits = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[DEMANGLE_NAME_BYTES + 256];
	static unsigned tried;
	size_t n = 0, i;

	if (size && data[0] == 0xff) {
		check_answers(data + 1, size - 1);
		return 0;
	}
	strcpy(name, size && data[0] == '_' ? "" : "_Z1f");
	n = strlen(name);
	for (i = 0; i < size && n <= DEMANGLE_NAME_BYTES; i++) {
		if (data[0] == '_')
			name[n++] = (char)data[i];
		else
			n = (size_t)(stpcpy(name + n, pieces[data[i] % (sizeof(pieces) / sizeof(*pieces))]) - name);
	}
	name[n] = '\0';
	refill();
	check(name);
	refill();
	if (++tried % 16 == 0) {
		char *plain = demangle(PLAIN);

		if (!plain && client.socket < 0) { /* the name before it used up the last process */
			refill();
			plain = demangle(PLAIN);
		}
		if (!plain || strcmp(plain, "at::add(at::Tensor const&)"))
			abort();
		free(plain);
	}
	return 0;
}
