// SPDX-License-Identifier: Apache-2.0
/* Names that are demangled, and hostile names that are not: what they cost, and what is left after them. */
#include "base/demangle.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "unit.h"

#define PLAIN	   "_ZN2at3addERKNS_6TensorE"
#define PLAIN_TEXT "at::add(at::Tensor const&)"

static const char *const ordinary[] = {
	PLAIN,
	"_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseERKN3c106ScalarE",
	"_ZN5torch8autograd6Engine7executeERKSt6vectorINS0_4EdgeESaIS3_EERKS2_IN2at6TensorESaIS9_EEbbbS7_",
	"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
	"_ZNSt6vectorIN2at6TensorESaIS1_EE12emplace_backIJRKS1_EEERS1_DpOT_",
	"_ZNSt17_Function_handlerIFvvEZ4mainEUlvE_E9_M_invokeERKSt9_Any_data",
	"_ZN3c104implL3runIJiEEEvRKSt5tupleIJDpT_EE",
	"_Z3sumIilEDTplfp_fp0_ET_T0_",
	"_ZTVN5mxnet6engine14ThreadedEngineE",
	"_ZTIN5mxnet6EngineE",
	"_ZTSN5mxnet6EngineE",
	"_ZThn16_N5mxnet6Engine4PushEv",
	"_ZGVZN5mxnet6Engine3GetEvE4inst",
	"_ZN5mxnet6EngineC1Ev",
	"_ZN5mxnet6EngineD0Ev",
	"_ZNK5mxnet6EnginecvbEv",
	"_ZN5mxnet2op8FooParamIN7mshadow3cpuEE3runIfLi2EEEvPT_",
	"_ZN4dnnl4impl3cpu3x648jit_uni_IL16dnnl_data_type_t1ELb1EE4initEv.cold",
	"_ZN3fooIXadL_Z3barvEEE3runEv",
	"_Z1fIiEvOT_",
	"_Z1gPFivES0_",
	"_Z1hA10_iRA10_Kc",
	"_Z1kMN5mxnet6EngineEFvvE",
	"_ZplRK1aS1_",
	"_Z1fDnDiDsDa",
	"_Z3fooILb0EEvNSt9enable_ifIXntT_EiE4typeE",
	"_ZNKSt8functionIFvN5mxnet10RunContextEEEclES1_",
	"_ZN2at4_ops3add4callERKNS_6TensorES4_RKN3c106ScalarE",
};

static const char *const not_mangled[] = {"",	   "main",  "_",       "_Z",	       "_Z1",
					  "_Z9ab", "_Zzzz", "at::add", "_RNvC1a4main", "_ZN1a"};

static char name[8192];

static void put(const char *text)
{
	strcat(name, text);
}

/* A reference to what the name has described after its first part. */
static void put_ref(unsigned i)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char text[] = {'S', digits[i / 36], digits[i % 36], '_', '\0'};

	if (i < 36)
		put("S");
	put(i < 36 ? text + 2 : text);
}

static void put_times(const char *text, unsigned n)
{
	while (n--)
		put(text);
}

/* A function whose parameters double: p<int,int>, p<first,first>, p<second,second>. 24 stand for 1 GB. */
static void doubling(unsigned n)
{
	strcpy(name, "_Z1f1pIiiE");
	for (unsigned i = 0; i < n; i++) {
		put("S_I");
		put_ref(i);
		put_ref(i);
		put("E");
	}
}

/* A conversion operator whose name the library parses twice, inside of one that it parses twice, and so on. */
static void parsed_twice(unsigned n)
{
	strcpy(name, "_ZN1acvT_I");
	put_times("N1acvT_I", n);
	put("i");
	put_times("EE", n);
	put("EEv");
}

static bool stays(const char *symbol)
{
	char *text = demangle(symbol);

	free(text);
	return !text;
}

static bool becomes(const char *symbol, const char *want)
{
	FREED(memory_freed) char *text = demangle(symbol);
	bool same = text && !strcmp(text, want);

	return same;
}

/* ---- the process that demangles: a child of a child */

static pid_t child_of(pid_t pid)
{
	char path[64];
	FREED(file_closed) FILE *f = NULL;
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%d", &child) != 1)
		child = 0;
	return child;
}

static long status_of(pid_t pid, const char *field)
{
	char path[64], line[256];
	long value = -1;
	FREED(file_closed) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			value = strtol(line + strlen(field), NULL, 10);
	return value;
}

static long peak_kib(void)
{
	struct rusage use;

	return getrusage(RUSAGE_SELF, &use) ? -1 : use.ru_maxrss;
}

static uint64_t cpu_ns_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

/* CPU time of this process, of the one that demangles, and of those that it has replaced, in 10 ms. */
static uint64_t cpu_ns(void)
{
	unsigned long long user = 0, sys = 0;
	pid_t keeper = child_of(getpid());
	char path[64];
	FREED(file_closed) FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", keeper);
	f = fopen(path, "re");
	if (f &&
	    fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu", &user, &sys) != 2)
		user = sys = 0;
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns_of(child_of(keeper)) +
	       (user + sys) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* The name must stay mangled within this CPU time, and an ordinary name must be demangled afterwards. */
static bool harmless(uint64_t limit_ms)
{
	uint64_t before_ns = cpu_ns(), used_ns;
	bool stayed = stays(name);

	used_ns = cpu_ns();
	used_ns -=
		before_ns < used_ns ? before_ns : used_ns; /* the sum loses up to 10 ms of a process that has ended */
	if (used_ns > limit_ms * 1000000)
		printf("# %.60s...: %.3f s of CPU\n", name, (double)used_ns / 1e9);
	return stayed && used_ns <= limit_ms * 1000000 && becomes(PLAIN, PLAIN_TEXT);
}

static bool gone_soon(pid_t pid)
{
	for (int i = 0; i < 1000 && !kill(pid, 0) && status_of(pid, "Threads:") > 0; i++)
		usleep(10000);
	return kill(pid, 0) || status_of(pid, "Threads:") <= 0;
}

/* Demangles in a process that is killed. */
static void check_killed(void)
{
	pid_t pid, keeper, server;
	char ready = 0;
	int ends[2];

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		ready = becomes(PLAIN, PLAIN_TEXT);
		if (write(ends[1], &ready, 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(read(ends[0], &ready, 1) == 1 && ready);
	keeper = child_of(pid);
	server = child_of(keeper);
	CHECK(keeper > 0 && server > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(gone_soon(server) && gone_soon(keeper));
	close(ends[0]);
	close(ends[1]);
}

static void check_ordinary(void)
{
	char *(*want)(const char *, char *, size_t *, int *) = NULL;
	void *lib = dlopen("libstdc++.so.6", RTLD_NOW);

	if (lib)
		*(void **)&want = dlsym(lib, "__cxa_demangle");
	CHECK(want);
	for (size_t i = 0; want && i < sizeof(ordinary) / sizeof(*ordinary); i++) {
		FREED(memory_freed) char *text = want(ordinary[i], NULL, NULL, NULL);

		CHECK(text && becomes(ordinary[i], text));
		if (!text)
			printf("# %s\n", ordinary[i]);
	}
}

/* A name of a function with an identifier of this length, and references to it as parameters. */
static void long_name(unsigned bytes, unsigned refs)
{
	sprintf(name, "_Z1f%u", bytes);
	put_times("a", bytes);
	put_times("S_", refs);
}

static void check_lengths(void)
{
	char *text;

	long_name(DEMANGLE_NAME_BYTES - 8, 0);
	CHECK(strlen(name) == DEMANGLE_NAME_BYTES);
	text = demangle(name);
	CHECK(text && strlen(text) == DEMANGLE_NAME_BYTES - 8 + strlen("f()"));
	free(text);
	long_name(DEMANGLE_NAME_BYTES - 7, 0);
	CHECK(stays(name));
	long_name(4000, 3); /* f(a, a, a, a) */
	text = demangle(name);
	CHECK(text && strlen(text) == 4 * 4000 + 3 * 2 + strlen("f()"));
	free(text);
	long_name(4000, 4);
	CHECK(stays(name));
}

static void check_hostile(void)
{
	doubling(24);
	CHECK(strlen(name) < 260 && harmless(300));
	doubling(335);
	CHECK(strlen(name) < DEMANGLE_NAME_BYTES && harmless(300));
	parsed_twice(40);
	CHECK(harmless(300));
	parsed_twice(390);
	CHECK(strlen(name) < DEMANGLE_NAME_BYTES && harmless(300));
	strcpy(name, "_Z1f");
	put_times("P", 4000);
	CHECK(harmless(300));
}

int main(void)
{
	pid_t keeper;
	long before_kib;

	TEST("the process that demangles ends when mxbpf is killed") check_killed();

	TEST("ordinary names become what the C++ library makes of them") check_ordinary();

	TEST("a text that is no C++ name stays as it is")
	for (size_t i = 0; i < sizeof(not_mangled) / sizeof(*not_mangled); i++)
		CHECK(stays(not_mangled[i]));

	TEST("a name of 4 KiB and a text of 16 KiB come out, longer ones stay mangled") check_lengths();

	keeper = child_of(getpid());
	TEST("the process that demangles can make no system call but read, write and exit")
	CHECK(becomes(PLAIN, PLAIN_TEXT) && status_of(child_of(keeper), "Seccomp:") == 2);

	TEST("a name of 260 bytes that stands for 1 GB stays mangled, within 0.1 s of CPU and 1 MiB")
	{
		before_kib = peak_kib();
		doubling(24);
		CHECK(strlen(name) < 260 && harmless(100));
		CHECK(peak_kib() <= before_kib + 1024);
		CHECK(status_of(child_of(keeper), "VmHWM:") <= before_kib + 1024);
	}

	TEST("names that double, are parsed twice or nest stay mangled, and the next name comes out") check_hostile();

	TEST("after 20 names that took too long, every name stays mangled, within 2 s of CPU")
	{
		uint64_t before_ns = cpu_ns();

		parsed_twice(40);
		for (int i = 0; i < 25; i++)
			CHECK(stays(name));
		CHECK(clock_ns(CLOCK_PROCESS_CPUTIME_ID) < before_ns + 1000000000);
		CHECK(stays(PLAIN) && !child_of(keeper));
	}
	UNIT_MAIN_END;
}
