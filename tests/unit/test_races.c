// SPDX-License-Identifier: Apache-2.0
/*
 * Tests outputs of root in a folder of another user, who exchanges what is at the path. Each way to write runs under
 * ptrace: two things are exchanged before its first system call, then again from the start before its second, and so
 * on.
 */
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/out.h"
#include "cmd/serve/stream.h"
#include "unit.h"

#define THEM	  12345
#define MARK	  "_mxbpf"
#define CALLS_MAX 500
#define HANG_S	  20

static char dir[] = "/tmp/test_races.XXXXXX";
static pid_t writer;
static int their_pipe = -1;

/* ---- what is at the path */

enum kind { A_FILE, LINK, TO_FOLDER, PIPE, FOLDER, MARKED, HARD, ROOTS_LINK, ROOTS_PIPE };

/* Before and after the exchange. */
static const enum kind pairs[][2] = {
	{A_FILE, LINK},	     {A_FILE, PIPE},	  {A_FILE, HARD},	   {A_FILE, TO_FOLDER},
	{HARD, LINK},	     {ROOTS_PIPE, PIPE},  {ROOTS_PIPE, LINK},	   {ROOTS_PIPE, HARD},
	{FOLDER, TO_FOLDER}, {MARKED, TO_FOLDER}, {ROOTS_LINK, TO_FOLDER}, {ROOTS_LINK, PIPE},
};

static void put_file(const char *path, const char *text)
{
	const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !close(fd));
}

static void make(enum kind kind, const char *at, bool deep)
{
	char mark[64];

	snprintf(mark, sizeof(mark), "%s/" MARK, at);
	if (kind == A_FILE)
		put_file(at, "theirs\n");
	else if (kind == LINK)
		CHECK(!symlink(deep ? "../../secret/victim" : "../secret/victim", at));
	else if (kind == TO_FOLDER)
		CHECK(!symlink(deep ? "../../secret" : "../secret", at));
	else if (kind == FOLDER || kind == MARKED)
		CHECK(!mkdir(at, 0755));
	else
		CHECK(!link(kind == PIPE	 ? "pipe"
			    : kind == HARD	 ? "secret/victim"
			    : kind == ROOTS_LINK ? "roots_link"
						 : "roots_pipe",
			    at));
	if (kind == MARKED)
		put_file(mark, "");
	if (kind < HARD && kind != PIPE)
		CHECK(!lchown(at, THEM, THEM));
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *ftw)
{
	(void)st;
	(void)what;
	(void)ftw;
	return remove(path);
}

static void remove_all(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void set_up(const enum kind pair[2], bool deep)
{
	remove_all("theirs");
	remove_all("ours");
	CHECK(!mkdir("theirs", 0755) && !mkdir("ours", 0755));
	if (deep) {
		make(MARKED, "theirs/t", false);
		make(pair[0], "theirs/t/f", true);
	} else {
		make(pair[0], "theirs/t", false);
	}
	make(pair[1], "theirs/other", deep);
	CHECK(!chown("theirs", THEM, THEM));
}

static bool is_secret_whole(void)
{
	char text[16] = "";
	struct stat st;
	FREED(file_closed) FILE *f = fopen("secret/victim", "r");
	const bool whole = f && fgets(text, sizeof(text), f) && !strcmp(text, "secret\n") && !fstat(fileno(f), &st) &&
			   st.st_uid == 0 && st.st_size == 7 && st.st_mode == (S_IFREG | 0640);

	return whole && !stat("secret", &st) && st.st_nlink == 2 && access("secret/t", F_OK) &&
	       access("secret/f", F_OK) && !access("secret/" MARK, F_OK);
}

/* ---- ways to write */

static void finish(struct out *o)
{
	struct err e = {0};

	if (!o)
		return;
	out_puts(o, "of root\n");
	out_commit(o, &e);
}

static void write_at(const char *path)
{
	struct out *o = NULL;
	struct err e = {0};

	if (!out_check(path, &e) && !out_open(path, false, &o, &e))
		finish(o);
}

static void write_file(void)
{
	write_at("theirs/t");
}

static void write_in_folder(void)
{
	write_at("theirs/t/f");
}

static void write_recording(void)
{
	struct err e = {0};
	const int fd = out_create("theirs/t", &e);

	if (fd >= 0)
		(void)!write(fd, "of root\n", 8);
}

static void write_stream(void)
{
	struct stream *s = NULL;
	struct err e = {0};

	if (!stream_open("theirs/t", &s, &e)) {
		stream_put(s, "of root\n", 8, 0);
		stream_close(s);
	}
}

static void write_folder(void)
{
	struct out_dir *d = NULL;
	struct out *o = NULL;
	struct err e = {0};

	if (out_dir_check("theirs/t", MARK, &e) || out_dir_open("theirs/t", MARK, "mark\n", &d, &e))
		return;
	out_dir_file(d, "f/f", &o, &e);
	finish(o);
	out_dir_close(d);
}

static void make_folder(void)
{
	struct err e = {0};

	out_dir_make("theirs/t/f/", &e);
}

static void look_and_delete(void)
{
	static struct out_parts parts;
	struct err e = {0};

	out_read_existing("theirs/t", &parts);
	out_scratch("theirs/t/f", &e);
	out_remove("theirs/t", &e);
}

static void make_beside(void)
{
	struct err e = {0};
	char name[64];
	int parent;

	/* A command of root would load a library from there. */
	if (out_dir_beside("theirs/t/f", name, &parent, &e) >= 0)
		_exit(2);
}

static const struct way {
	void (*write)(void);
	bool deep; /* what is exchanged is in the folder */
} ways[] = {
	{write_file, false},   {write_in_folder, false}, {write_in_folder, true}, {write_recording, false},
	{write_stream, false}, {write_folder, false},	 {write_folder, true},	  {make_folder, false},
	{make_folder, true},   {look_and_delete, false}, {make_beside, false},
};

/* ---- exchanges */

static void kill_writer(int signal)
{
	(void)signal;
	kill(writer, SIGKILL);
}

/* Returns false if the way has fewer system calls than nth. */
static bool exchange_at(const struct way *way, unsigned nth)
{
	const char *place = way->deep ? "theirs/t/f" : "theirs/t";
	unsigned stops;
	int status = 0;

	fflush(stdout);
	writer = fork();
	if (!writer) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		way->write();
		_exit(0);
	}
	alarm(HANG_S);
	CHECK(waitpid(writer, &status, 0) == writer && WIFSTOPPED(status));
	for (stops = 0; WIFSTOPPED(status) && stops <= 2 * nth;
	     stops++) { /* one at the start, one at the end of a call */
		ptrace(PTRACE_SYSCALL, writer, 0, 0);
		waitpid(writer, &status, 0);
	}
	if (WIFSTOPPED(status)) {
		syscall(SYS_renameat2, AT_FDCWD, place, AT_FDCWD, "theirs/other", RENAME_EXCHANGE);
		ptrace(PTRACE_DETACH, writer, 0, 0);
		waitpid(writer, &status, 0);
		stops = 0;
	}
	alarm(0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	return !stops && nth < CALLS_MAX;
}

static void test_way(unsigned nth)
{
	char got[16];
	unsigned i, call;

	for (i = 0; i < sizeof(pairs) / sizeof(*pairs) && !unit_bad; i++)
		for (call = 0; !unit_bad; call++) {
			set_up(pairs[i], ways[nth].deep);
			if (!exchange_at(&ways[nth], call))
				break;
			CHECK(is_secret_whole());
			CHECK(read(their_pipe, got, sizeof(got)) <= 0);
			if (unit_bad)
				printf("# way %u, pair %u, system call %u\n", nth, i, call);
		}
}

int main(void)
{
	unsigned i;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, kill_writer);
	unsetenv("SUDO_UID");
	TEST_IF(!geteuid(),
		"whatever another user exchanges at an output path, and when, nothing of others is written, and "
		"nobody waits for his pipe, or writes into it",
		"not root")
	{
		CHECK(mkdtemp(dir) && !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
		CHECK(!mount("tmpfs", dir, "tmpfs", 0, "mode=755") && !chdir(dir) &&
		      !mkdir("secret", 0755)); /* fsync() is quick */
		put_file("secret/victim", "secret\n");
		CHECK(!link("secret/victim", "secret/" MARK) && !symlink("../ours", "roots_link"));
		CHECK(!mkfifo("roots_pipe", 0600) && open("roots_pipe", O_RDWR | O_NONBLOCK | O_CLOEXEC) >= 0);
		CHECK(!mkfifo("pipe", 0600) && !chown("pipe", THEM, THEM));
		their_pipe = open("pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		for (i = 0; i < sizeof(ways) / sizeof(*ways) && !unit_bad; i++)
			test_way(i);
		CHECK(!chdir("/") && !umount2(dir, MNT_DETACH) && !rmdir(dir));
	}
	return unit_end();
}
