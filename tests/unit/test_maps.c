// SPDX-License-Identifier: Apache-2.0
/* Tests the parser of /proc/PID/maps with lines from the kernel and with hostile file names. */

#include "target/priv.h"
#include "unit.h"

int main(void)
{
	char line[512];
	struct tgt_map m;

	TEST("a line of maps is parsed")
	{
		snprintf(line, sizeof(line),
			 "7f00-8f00 r-xp 00001000 fe:1f 2182365       /x/a b\\012c (deleted) (deleted)");
		CHECK(!tgt_map_parse(line, &m));
		CHECK(m.start == 0x7f00 && m.end == 0x8f00 && m.off == 0x1000 && m.ino == 2182365 && m.exec &&
		      m.deleted);
		CHECK(m.dev == ((uint64_t)0xfe << 8 | 0x1f) && !strcmp(m.path, "/x/a b\nc (deleted)"));
		snprintf(line, sizeof(line), "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]");
		CHECK(!tgt_map_parse(line, &m) && m.exec && !m.ino && !strcmp(m.path, "[vsyscall]"));
		snprintf(line, sizeof(line), "1000-2000 rw-p 00000000 00:00 0 ");
		CHECK(!tgt_map_parse(line, &m) && !m.exec && !m.path[0]);
	}
	TEST("a damaged line of maps is refused")
	{
		static const char *const bad[] = {
			"",
			" ",
			"x",
			"1000",
			"1000-2000",
			"1000-2000 r-xp",
			"1000-2000 r-xp 0 fe",
			"1000-2000 r-xp 0 fe:0",
			"2000-1000 r-xp 0 fe:0 7 /a",
			"1000-1000 r-xp 0 fe:0 7 /a",
			"1000-2000 rx 0 fe:0 7 /a",
			"1000-2000 r-xps 0 fe:0 7 /a",
			"1000-2000 r-xp 0 fe:0 7/a",
			"-\n",
			"1000-2000 r-xp 0 fe:0 /a",
		};
		unsigned int i;

		for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			snprintf(line, sizeof(line), "%s", bad[i]);
			CHECK(tgt_map_parse(line, &m) == -EBADMSG);
		}
	}
	TEST("only files mapped executable are libraries, each inode once")
	{
		char text[] =
			"1000-2000 r--p 0 fe:0 7 /a\n2000-3000 r-xp 1000 fe:0 7 /a\n3000-4000 r-xp 2000 fe:0 7 /a\n"
			"4000-5000 r-xp 0 00:00 0 [vdso]\ngarbage\n5000-6000 rwxp 0 00:00 0 \n"
			"6000-7000 r-xp 0 fe:1 7 /b (deleted)\n7000-8000 r-xs 0 00:01 9 anon_inode:[x]\n";
		struct tgt t = {.pid = 7, .pidfd = -1, .procfd = -1, .memfd = -1};

		CHECK(!tgt_maps_libs(&t, text) && t.nslots == 2);
		CHECK(t.nslots == 2 && t.slots[0].start == 0x2000 && t.slots[0].off == 0x1000);
		CHECK(t.nslots == 2 && !strcmp(t.slots[0].lib.open_path, "/proc/7/map_files/2000-3000"));
		CHECK(t.nslots == 2 && t.slots[1].lib.deleted && !strcmp(t.slots[1].lib.path, "/b"));
		while (t.nslots--) {
			free(t.slots[t.nslots].lib.path);
			free(t.slots[t.nslots].lib.open_path);
		}
		free(t.slots);
	}
	UNIT_MAIN_END;
}
