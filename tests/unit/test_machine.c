// SPDX-License-Identifier: Apache-2.0
/* Tests the parsing of kernel files from which gauges are read, with real and hostile contents. */
#include "feature/machine/gauge.h"
#include "unit.h"

#include "feature/machine/read_priv.h"

#define NONE 0xabcdef /* the value after a failed reading */

static uint64_t parsed(unsigned id, unsigned version, const char *text)
{
	uint64_t value = NONE;
	int err = mach_parse(&machine_gauges[id].from[version - 1], text, &value);

	return err ? NONE : value;
}

static const char stat_text[] = "cpu  100 20 30 4000 50 6 7 80 9 1\n"
				"cpu0 60 10 15 2000 25 3 4 40 5 1\n"
				"cpu1 40 10 15 2000 25 3 3 40 4 0\n"
				"intr 1 2 3\n";

static void test_values(void)
{
	static const char events[] = "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n";
	static const char cpu[] = "usage_usec 12\nuser_usec 7\nnr_periods 9\nnr_throttled 8\nthrottled_usec 4000000\n";
	static const char stall[] = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00 total=5\n";

	TEST("a cgroup's values are those of their lines, with microseconds converted to ns")
	{
		CHECK(parsed(MXBPF_GAUGE_GROUP_CPU, 1, cpu) == 12000);
		CHECK(parsed(MXBPF_GAUGE_PERIODS, 1, cpu) == 9 && parsed(MXBPF_GAUGE_PERIODS_THROTTLED, 1, cpu) == 8);
		CHECK(parsed(MXBPF_GAUGE_THROTTLED, 1, cpu) == 4000000000);
		CHECK(parsed(MXBPF_GAUGE_THROTTLED, 2, "nr_periods 1\nthrottled_time 77\n") == 77);
		CHECK(parsed(MXBPF_GAUGE_MEMORY_MAX_HITS, 1, events) == 3 &&
		      parsed(MXBPF_GAUGE_OOM_KILLS, 1, events) == 5);
	}
	TEST("a limit is a number or no limit, in the form of either cgroup version")
	{
		CHECK(parsed(MXBPF_GAUGE_CPU_MAX, 1, "30000 100000\n") == 300);
		CHECK(parsed(MXBPF_GAUGE_CPU_MAX, 1, "max 100000\n") == MXBPF_GAUGE_NO_LIMIT);
		CHECK(parsed(MXBPF_GAUGE_CPU_MAX, 2, "250000\n100000\n") == 2500);
		CHECK(parsed(MXBPF_GAUGE_CPU_MAX, 2, "-1\n100000\n") == MXBPF_GAUGE_NO_LIMIT);
		CHECK(parsed(MXBPF_GAUGE_MEMORY_MAX, 1, "max\n") == MXBPF_GAUGE_NO_LIMIT);
		CHECK(parsed(MXBPF_GAUGE_MEMORY_MAX, 2, "9223372036854771712\n") == MXBPF_GAUGE_NO_LIMIT);
		CHECK(parsed(MXBPF_GAUGE_MEMORY_MAX, 1, "1073741824\n") == 1073741824);
	}
	TEST("the CPUs of a list are counted")
	{
		CHECK(parsed(MXBPF_GAUGE_GROUP_CPUS, 1, "0-3,8,10-11\n") == 7);
		CHECK(parsed(MXBPF_GAUGE_GROUP_CPUS, 1, "5\n") == 1);
	}
	TEST("busy time is summed over its kinds, and guest time is not counted twice")
	{
		CHECK(parsed(MXBPF_GAUGE_CPU_BUSY, 1, stat_text) == (100 + 20 + 30 + 6 + 7) * 10000000ull);
		CHECK(parsed(MXBPF_GAUGE_CPU_IDLE, 1, stat_text) == 4000 * 10000000ull);
		CHECK(parsed(MXBPF_GAUGE_CPU_STEAL, 1, stat_text) == 80 * 10000000ull);
	}
	TEST("pressure is the total of its own line")
	{
		CHECK(parsed(MXBPF_GAUGE_STALL_MEMORY, 1, stall) == 4000);
		CHECK(parsed(MXBPF_GAUGE_STALL_MEMORY_ALL, 1, stall) == 5000);
		CHECK(parsed(MXBPF_GAUGE_STALL_MEMORY, 1, "some avg10=1.00\nfull avg10=0.00 total=5\n") == NONE);
	}
}

static void test_hostile_values(void)
{
	static const char *const texts[] = {
		"",
		"\n",
		" ",
		"-",
		":",
		"some",
		"some ",
		"some total=",
		"cpu",
		"cpu ",
		"cpu  1 2",
		"cpu  x",
		"usage_usec",
		"usage_usec ",
		"0x10",
		"1-",
		"3-1\n",
		"0-99999999",
		"0,",
		"1,,2",
		"max",
		"30000",
		"30000 ",
		"30000 0",
		"99999999999999999999",
		"99999999999999999999 1",
		"18446744073709551615 100000",
		"nr_periods -5\n",
	};
	unsigned id, version;
	size_t i;

	TEST("truncated, empty or excessive contents give a number or no value")
	{
		for (id = 1; id < MXBPF_GAUGE_IDS; id++)
			for (version = 1; version <= 2; version++) {
				const struct machine_source *from = &machine_gauges[id].from[version - 1];

				if (!from->file || from->form >= MACHINE_FORM_KHZ)
					continue;
				for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
					parsed(id, version, texts[i]);
			}
		CHECK(parsed(MXBPF_GAUGE_CPU_MAX, 1, "30000 0") == NONE);
		CHECK(parsed(MXBPF_GAUGE_CPU_MAX, 1, "18446744073709551615 100000") == NONE);
		CHECK(parsed(MXBPF_GAUGE_GROUP_CPUS, 1, "0,") == NONE &&
		      parsed(MXBPF_GAUGE_GROUP_CPUS, 1, "3-1\n") == NONE);
		CHECK(parsed(MXBPF_GAUGE_GROUP_MEMORY, 1, "99999999999999999999") == NONE);
		CHECK(parsed(MXBPF_GAUGE_THROTTLED, 1, "throttled_usec 18446744073709551615\n") == NONE);
		CHECK(parsed(MXBPF_GAUGE_PERIODS, 1, "nr_periods -5\n") == NONE);
		CHECK(parsed(MXBPF_GAUGE_PERIODS, 1, "xnr_periods 5\nnr_periods2 6\n") == NONE);
	}
}

static const char both[] = "9:name=systemd:/\n4:memory:/m/a:b\n2:cpu,cpuacct:/c/d\n0::/u/v\n";

static void test_paths(void)
{
	FREED(memory_freed) char *huge = malloc(2 * MACH_PATH_BYTES);
	char path[MACH_PATH_BYTES];

	TEST("the path of a cgroup is that of its hierarchy's line, including colons")
	{
		CHECK(!mach_group_path(both, NULL, path) && !strcmp(path, "/u/v"));
		CHECK(!mach_group_path(both, "cpu", path) && !strcmp(path, "/c/d"));
		CHECK(!mach_group_path(both, "cpuacct", path) && !strcmp(path, "/c/d"));
		CHECK(!mach_group_path(both, "memory", path) && !strcmp(path, "/m/a:b"));
		CHECK(mach_group_path(both, "cpuset", path) == -ENOENT);
		CHECK(mach_group_path("0::/x (deleted)\n", NULL, path) == -ESTALE);
	}
	TEST("a text that is not from /proc/PID/cgroup has no path")
	{
		CHECK(mach_group_path("", NULL, path) == -ENOENT && mach_group_path("0:", NULL, path) == -ENOENT);
		CHECK(mach_group_path("0::", NULL, path) == -ENOENT && mach_group_path("0::x", NULL, path) == -ENOENT);
		CHECK(mach_group_path("10::/x\n", NULL, path) == -ENOENT);
		CHECK(mach_group_path("3:cpux,xcpu:/x\n", "cpu", path) == -ENOENT);
		memset(huge, 'x', 2 * MACH_PATH_BYTES);
		memcpy(huge, "0::/", 4);
		huge[2 * MACH_PATH_BYTES - 1] = '\0';
		CHECK(mach_group_path(huge, NULL, path) == -E2BIG);
	}
}

static const char *dir_of(const char *mountinfo, const char *controller, const char *path)
{
	static char dir[MACH_PATH_BYTES];
	size_t mount_len = 0;

	if (mach_group_dir(mountinfo, controller, path, dir, &mount_len))
		return "";
	return mount_len <= strlen(dir) ? dir : "beyond";
}

#define MOUNT2(root, point)	  "30 25 0:26 " root " " point " rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
#define MOUNT1(root, point, opts) "31 25 0:27 " root " " point " rw - cgroup cgroup rw," opts "\n"

static void test_mounts(void)
{
	static const char v1[] =
		MOUNT2("/", "/cg/unified") MOUNT1("/", "/cg/cpuset", "cpuset") MOUNT1("/", "/cg/cpu", "cpu,cpuacct");
	static const char container[] = MOUNT2("/docker/x", "/sys/fs/cgroup");

	TEST("the directory of a cgroup on the host is below the mount of its hierarchy")
	{
		CHECK(!strcmp(dir_of(MOUNT2("/", "/sys/fs/cgroup"), NULL, "/a/b"), "/sys/fs/cgroup/a/b"));
		CHECK(!strcmp(dir_of(v1, "cpu", "/a"), "/cg/cpu/a") &&
		      !strcmp(dir_of(v1, NULL, "/a"), "/cg/unified/a"));
		CHECK(!strcmp(dir_of(v1, "memory", "/a"), ""));
		CHECK(!strcmp(dir_of(MOUNT2("/", "/a\\040b\\134"), NULL, "/"), "/a b\\"));
	}
	TEST("the mount in a container is the cgroup itself, with or without a cgroup namespace")
	{
		CHECK(!strcmp(dir_of(MOUNT2("/", "/sys/fs/cgroup"), NULL, "/"), "/sys/fs/cgroup"));
		CHECK(!strcmp(dir_of(container, NULL, "/docker/x"), "/sys/fs/cgroup"));
		CHECK(!strcmp(dir_of(container, NULL, "/docker/x/y"), "/sys/fs/cgroup/y"));
		CHECK(!strcmp(dir_of(container, NULL, "/docker/xy"), "") &&
		      !strcmp(dir_of(container, NULL, "/docker"), ""));
	}
	TEST("a cgroup outside of the namespace is found only through a mount that shows it")
	{
		CHECK(!strcmp(dir_of(MOUNT2("/", "/sys/fs/cgroup"), NULL, "/../b"), ""));
		CHECK(!strcmp(dir_of(MOUNT2("/../b", "/m"), NULL, "/../b/c"), "/m/c"));
		CHECK(!strcmp(dir_of(MOUNT2("/..", "/m"), NULL, "/../../c"), ""));
		CHECK(!strcmp(dir_of(MOUNT2("/", "/m"), NULL, "/..b"), "/m/..b"));
	}
	TEST("the mount with the largest subtree is taken, and the last one of equal mounts")
	{
		CHECK(!strcmp(dir_of(MOUNT2("/a", "/one") MOUNT2("/", "/two"), NULL, "/a"), "/two/a"));
		CHECK(!strcmp(dir_of(MOUNT2("/", "/one") MOUNT2("/", "/two"), NULL, "/a"), "/two/a"));
	}
	TEST("truncated lines and other file systems are ignored")
	{
		CHECK(!strcmp(dir_of("", NULL, "/"), "") && !strcmp(dir_of("30 25 0:26 /", NULL, "/"), ""));
		CHECK(!strcmp(dir_of("30 25 0:26 / /x rw - cgroup2", NULL, "/"), ""));
		CHECK(!strcmp(dir_of("30 25 0:26 / /x rw cgroup2 cgroup2 rw\n", NULL, "/"), ""));
		CHECK(!strcmp(dir_of("30 25 0:26 / /x rw - tmpfs cgroup2 rw\n", NULL, "/"), ""));
	}
}

static void put_file(const char *dir, unsigned cpu, const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "mkdir -p %s/devices/system/cpu/cpu%u/cpufreq", dir, cpu);
	CHECK(!system(path));
	snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%u/cpufreq/%s", dir, cpu, name);
	f = fopen(path, "w");
	if (f)
		fputs(text, f);
	CHECK(f && !fclose(f));
}

static void test_frequency(void)
{
	static const char later[] = "cpu  0 0 0 0 0 0 0 0 0 0\n"
				    "cpu0 160 10 15 2000 25 3 4 40 5 1\n" /* busy all the time */
				    "cpu1 41 10 15 2099 25 3 3 40 4 0\n"; /* idle nearly all the time */
	char dir[] = "/tmp/mxbpf-test-freq-XXXXXX", remove[64];
	struct mach_freq f = {.sys = mkdtemp(dir)};
	uint64_t khz = NONE;

	TEST("the frequency is that of busy CPUs and ignores idle ones")
	{
		put_file(dir, 0, "scaling_cur_freq", "1200000\n");
		put_file(dir, 0, "cpuinfo_max_freq", "3000000\n");
		put_file(dir, 1, "scaling_cur_freq", "400000\n");
		put_file(dir, 1, "cpuinfo_max_freq", "3000000\n");
		CHECK(mach_freq(&f, stat_text, &khz) == -ENODATA);
		CHECK(!mach_freq(&f, later, &khz) && khz == 1200000 && f.khz_max == 3000000);
		CHECK(mach_freq(&f, later, &khz) == -ENODATA); /* no time has passed */
	}
	TEST("the highest frequency is absent, not 0, if it cannot be read")
	{
		put_file(dir, 0, "cpuinfo_max_freq", "\n");
		mach_freq(&f, stat_text, &khz);
		mach_freq(&f, "cpu  0\n", &khz);
		f.ticks.len = 0;
		CHECK(mach_freq(&f, stat_text, &khz) == -ENODATA);
		CHECK(!mach_freq(&f, later, &khz) && khz == 1200000 && !f.khz_max);
	}
	TEST("the frequency is read from /proc/cpuinfo for each CPU that has one there")
	{
		static const char text[] = "processor\t: 0\ncpu MHz\t\t: 2596.156\n\n"
					   "processor\t: 1\nflags\t: x\n\nprocessor\t: 2\ncpu MHz\t\t: 800\n";

		CHECK(!mach_cpuinfo_khz(text, 0, &khz) && khz == 2596156);
		CHECK(!mach_cpuinfo_khz(text, 2, &khz) && khz == 800000);
		CHECK(mach_cpuinfo_khz(text, 1, &khz) == -ENODATA && mach_cpuinfo_khz(text, 3, &khz) == -ENODATA);
		CHECK(mach_cpuinfo_khz("", 0, &khz) == -ENODATA && mach_cpuinfo_khz("processor", 0, &khz) == -ENODATA);
		CHECK(mach_cpuinfo_khz("processor: 0\ncpu MHz", 0, &khz) == -ENODATA);
	}
	mach_freq_fini(&f);
	snprintf(remove, sizeof(remove), "rm -r %s", dir);
	CHECK(!system(remove));
}

/* Reads the gauges of this process. The values differ between machines; their consistency does not. */
static void test_reading(void)
{
	struct mach *m = mach_open(getpid(), NULL, NULL);
	const struct mxbpf_gauge *g;
	FREED(buf_fini) struct buf out = {0};
	uint64_t last_ns = 0;
	unsigned stats = 0;
	size_t pos;

	TEST("a reading has complete records in time order, including the CPU time of the machine")
	{
		CHECK(m && !mach_read(m, false, &out) && !mach_read(m, true, &out));
		for (pos = 0; pos < out.len; pos += g->h.size) {
			g = (const void *)(out.data + pos);
			if (g->h.kind == MXBPF_NAME)
				continue;
			CHECK(g->h.kind == MXBPF_GAUGE && g->h.size == MXBPF_GAUGE_BYTES_MIN && !g->h.tgid);
			CHECK(g->id && g->id < MXBPF_GAUGE_IDS && g->h.ts_ns >= last_ns);
			last_ns = g->h.ts_ns;
			stats += g->id == MXBPF_GAUGE_CPU_BUSY && g->value && !g->scope;
		}
		CHECK(pos == out.len && stats == 2);
	}
	TEST("the gauges of the machine are read even if the process does not exist")
	{
		mach_close(m);
		out.len = 0;
		m = mach_open(1 << 22, NULL, NULL);
		CHECK(m && !mach_read(m, false, &out) && out.len);
	}
	mach_close(m);
}

int main(void)
{
	test_values();
	test_hostile_values();
	test_paths();
	test_mounts();
	test_frequency();
	test_reading();
	UNIT_MAIN_END;
}
