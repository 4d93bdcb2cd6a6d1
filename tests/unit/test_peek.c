/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the quick look at a process: which lines of a memory map count, and which words of a cgroup are container ids.
 */
#include "unit.h"

#include <sys/sysmacros.h>

#include "target/priv.h"

#define ID12 "0123456789ab"
#define ID64 ID12 "cdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *const globs[] = {"libmxnet.so*", "libtorch_cpu.so*", NULL};

static struct tgt_file files[2];

static unsigned match(const char *line)
{
	FREED(memory_freed) char *text = strdup(line);
	unsigned mask = tgt_maps_match(text, globs, files);

	return mask;
}

static const char *container(const char *cgroup)
{
	static char id[TGT_CONTAINER_BYTES];

	strcpy(id, "-");
	tgt_cgroup_container(cgroup, id);
	return id;
}

#define MAP(perms, path) "7f0000000000-7f0000001000 " perms " 00000000 08:01 1234        " path "\n"

int main(void)
{
	struct tgt_container c;
	unsigned mask;

	TEST("a library is recognized by its file name if it is mapped executable, even if it was deleted")
	{
		CHECK(match(MAP("r-xp", "/x/libmxnet.so")) == 1);
		CHECK(match(MAP("r-xp", "/x/libmxnet.so.1 (deleted)")) == 1);
		CHECK(match(MAP("r-xp", "/x/libtorch_cpu.so") MAP("r-xp", "/x/libmxnet.so")) == 3);
		CHECK(match(MAP("r--p", "/x/libmxnet.so")) == 0);
		CHECK(match(MAP("r-xp", "/libmxnet.so/other.so")) == 0);
		CHECK(match(MAP("r-xp", "/x/notlibmxnet.so")) == 0);
	}
	TEST("the file of a library is the one that the line of the map names")
	{
		CHECK(match(MAP("r-xp", "/y/other.so") MAP("r-xp", "/x/libtorch_cpu.so")) == 2);
		CHECK(files[1].dev == makedev(8, 1) && files[1].ino == 1234);
		memset(files, 0, sizeof(files));
		CHECK(match("7f00-7f01 r-xp 0 /x/libmxnet.so\n") == 1 && !files[0].ino);
	}
	TEST("a malformed line is no library")
	{
		CHECK(match("") == 0 && match("\n\n") == 0 && match("/libmxnet.so") == 0 && match("a /") == 0);
		CHECK(match("7f00-7f01 r /libmxnet.so\n") == 0);
	}
	TEST("containers of docker, podman, containerd, cri-o and kubernetes are recognized by their id")
	{
		CHECK(!strcmp(container("0::/system.slice/docker-" ID64 ".scope\n"), ID12));
		CHECK(!strcmp(container("12:pids:/docker/" ID64 "\n0::/\n"), ID12));
		CHECK(!strcmp(container("0::/machine.slice/libpod-" ID64 ".scope/container\n"), ID12));
		CHECK(!strcmp(container("0::/kubepods.slice/kubepods-besteffort.slice/"
					"kubepods-besteffort-pod6a8d1b64_7d6e_4ef7_a8cf_0123456789ab.slice/"
					"cri-containerd-" ID64 ".scope\n"),
			      ID12));
		CHECK(!strcmp(container("1:name=systemd:/kubepods/burstable/pod6a8d1b64/" ID64 "\n"), ID12));
	}
	TEST("a container inside a container has its own id")
	CHECK(!strcmp(
		container("0::/docker/ffff" ID12 "ffffffffffffffffffffffffffffffffffffffffffffffff/docker/" ID64 "\n"),
		ID12));
	TEST("a word that is not a container id is ignored")
	{
		CHECK(!strcmp(container("0::/user.slice/user-1000.slice/session-3.scope\n"), "-"));
		CHECK(!strcmp(container("0::/" ID64 "0\n"), "-"));
		CHECK(!strcmp(container(""), "-"));
	}
	TEST("a process that does not exist gives no container and no libraries")
	{
		CHECK(tgt_peek(1 << 30, globs, NULL, &mask) == -ENOENT && !mask);
		tgt_container(1 << 30, &c);
		CHECK(!c.id[0] && !c.other_pid_ns && !c.other_mount_ns);
		tgt_container(getpid(), &c);
		CHECK(!c.other_pid_ns && !c.other_mount_ns);
	}
	UNIT_MAIN_END;
}
