// SPDX-License-Identifier: Apache-2.0
/*
 * Tests the labels that environments and control groups give, those of a process that this program starts, and labels
 * in recordings.
 */
#include <pwd.h>

#include "record/record.h"
#include "target/labels.h"
#include "unit.h"

#define ID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER  "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID    "1f2e3d4c-5b6a-7988-8796-a5b4c3d2e1f0"
#define UID_   "1f2e3d4c_5b6a_7988_8796_a5b4c3d2e1f0"
#define STATIC "0a1b2c3d4e5f60718293a4b5c6d7e8f9"

static struct tgt_labels by_env(const char *env, size_t bytes)
{
	struct tgt_labels l;

	tgt_labels_parse(env, bytes, "", &l);
	return l;
}
#define BY_ENV(text) by_env(text, sizeof(text) - 1)

static struct tgt_labels by_cgroup(const char *cgroup)
{
	struct tgt_labels l;

	tgt_labels_parse("", 0, cgroup, &l);
	return l;
}

static void test_cgroups(void)
{
	static const struct {
		const char *cgroup, *container, *pod, *slurm, *job;
	} forms[] = {
		{"", "", "", "", ""},
		{"0::/user.slice/user-1000.slice/session-3.scope\n", "", "", "", ""},
		{"0::/docker/" ID "\n", "0123456789ab", "", "", "container 0123456789ab"},
		{"0::/system.slice/docker-" ID ".scope\n", "0123456789ab", "", "", "container 0123456789ab"},
		{"12:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/system.slice/containerd.service\n",
		 "0123456789ab", "", "", "container 0123456789ab"},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", "0123456789ab", "", "", "container 0123456789ab"},
		/* Kubernetes: by the kubelet itself, of a guaranteed pod, by systemd, and a static pod. */
		{"4:memory:/kubepods/burstable/pod" UID "/" ID "\n", "0123456789ab", UID, "", "pod " UID},
		{"0::/kubepods/pod" UID "/" ID "\n", "0123456789ab", UID, "", "pod " UID},
		{"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/cri-containerd-" ID
		 ".scope\n",
		 "0123456789ab", UID, "", "pod " UID},
		{"0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", "0123456789ab", UID, "",
		 "pod " UID},
		{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC ".slice/docker-" ID
		 ".scope\n",
		 "0123456789ab", STATIC, "", "pod " STATIC},
		/* A cluster in a container: the inner pod and the inner container. */
		{"0::/docker/" OTHER "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
		 ".slice/cri-containerd-" ID ".scope\n",
		 "0123456789ab", UID, "", "pod " UID},
		{"0::/kubepods/pod" STATIC "/" OTHER "/kubepods/pod" UID "/" ID "\n", "0123456789ab", UID, "",
		 "pod " UID},
		{"9:devices:/slurm/uid_1000/job_123/step_0/task_0\n", "", "", "123", "slurm 123"},
		{"0::/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0\n", "", "", "4711", "slurm 4711"},
		{"0::/system.slice/node1_slurmstepd.scope/job_77\n", "", "", "77", "slurm 77"},
		{"0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0/docker/" ID "\n", "0123456789ab", "",
		 "123", "slurm 123"},
		/* These only look like one of the above. */
		{"0::/docker/0123456789abcdef\n", "", "", "", ""},
		{"0::/job_123/step_0\n", "", "", "", ""},
		{"0::/slurm/job_/step_0\n", "", "", "", ""},
		{"0::/slurm/job_12x/step_0\n", "", "", "", ""},
		{"0::/pod" UID "\n", "", "", "", ""},
		{"0::/kubepods/pod\n", "", "", "", ""},
		{"0::/kubepods/podx" UID "\n", "", "", "", ""},
		{"0::/kubepods/pod" UID "x\n", "", "", "", ""},
		{"0::/kubepods/pod" UID "0\n", "", "", "", ""},
		{"0::/kubepods/pod1f2e3d4c-5b6a\n", "", "", "", ""},
		{"0::/kubepods/pod-------------------------------------\n", "", "", "", ""},
	};
	struct tgt_labels l;
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		l = by_cgroup(forms[i].cgroup);
		if (strcmp(l.container, forms[i].container) || strcmp(l.pod_uid, forms[i].pod) ||
		    strcmp(l.slurm_job, forms[i].slurm) || strcmp(l.job, forms[i].job)) {
			printf("# %s: container '%s', pod '%s', Slurm job '%s', job '%s'\n", forms[i].cgroup,
			       l.container, l.pod_uid, l.slurm_job, l.job);
			CHECK(!"labels");
		}
	}
}

static bool has_ranks(const struct tgt_labels *l, int32_t rank, int32_t local_rank, int32_t world_size,
		      int32_t group_rank)
{
	return l->rank == rank && l->local_rank == local_rank && l->world_size == world_size &&
	       l->group_rank == group_rank;
}

static void test_ranks(void)
{
	struct tgt_labels l = BY_ENV("RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=8\0GROUP_RANK=2\0");

	CHECK(has_ranks(&l, 3, 1, 8, 2));
	l = BY_ENV("OMPI_COMM_WORLD_SIZE=4\0OMPI_COMM_WORLD_RANK=2\0OMPI_COMM_WORLD_LOCAL_RANK=0\0");
	CHECK(has_ranks(&l, 2, 0, 4, -1));
	l = BY_ENV("PMI_RANK=5\0PMI_SIZE=6\0MPI_LOCALRANKID=1\0");
	CHECK(has_ranks(&l, 5, 1, 6, -1));
	l = BY_ENV("SLURM_PROCID=7\0SLURM_LOCALID=3\0SLURM_NTASKS=16\0SLURM_NODEID=1\0SLURM_JOB_ID=99\0");
	CHECK(has_ranks(&l, 7, 3, 16, 1) && !strcmp(l.slurm_job, "99") && !strcmp(l.job, "slurm 99"));
	l = BY_ENV("SLURM_PROCID=1\0SLURM_NTASKS=2\0SLURM_LOCALID=0\0RANK=9\0WORLD_SIZE=16\0");
	CHECK(has_ranks(&l, 9, -1, 16, -1));
	l = BY_ENV("WORLD_SIZE=16\0LOCAL_RANK=1\0");
	CHECK(has_ranks(&l, -1, -1, -1, -1));
	l = BY_ENV("XRANK=1\0RANKS=2\0RANK\0A=RANK=3\0");
	CHECK(has_ranks(&l, -1, -1, -1, -1));
}

static void test_roles(void)
{
	struct tgt_labels l = BY_ENV("DMLC_ROLE=worker\0DMLC_WORKER_ID=1\0DMLC_NUM_WORKER=2\0DMLC_NUM_SERVER=4\0");

	CHECK(!strcmp(l.role, "worker") && has_ranks(&l, 1, -1, 2, -1));
	l = BY_ENV("DMLC_ROLE=server\0DMLC_SERVER_ID=3\0DMLC_WORKER_ID=1\0DMLC_NUM_WORKER=2\0DMLC_NUM_SERVER=4\0");
	CHECK(!strcmp(l.role, "server") && has_ranks(&l, 3, -1, 4, -1));
	l = BY_ENV("DMLC_ROLE=worker\0DMLC_RANK=5\0DMLC_NUM_WORKER=8\0");
	CHECK(has_ranks(&l, 5, -1, 8, -1));
	/* Numbers of all processes are none of a role. */
	l = BY_ENV("DMLC_ROLE=scheduler\0SLURM_PROCID=4\0SLURM_NTASKS=5\0DMLC_PS_ROOT_URI=10.0.0.1\0DMLC_PS_ROOT_PORT="
		   "9\0");
	CHECK(!strcmp(l.role, "scheduler") && has_ranks(&l, -1, -1, -1, -1) && !strcmp(l.job, "10.0.0.1:9"));
}

/* A Slurm job has containers, a container has jobs one after another. */
static void test_job(void)
{
	static const char env[] = "MASTER_PORT=29500\0MASTER_ADDR=node7\0SLURM_JOB_ID=5\0";
	struct tgt_labels l = BY_ENV("MASTER_PORT=29500\0MASTER_ADDR=node7\0");

	CHECK(!strcmp(l.job, "node7:29500"));
	l = BY_ENV("MASTER_ADDR=node7\0");
	CHECK(!*l.job);
	l = BY_ENV("MASTER_ADDR=\0MASTER_PORT=1\0");
	CHECK(!*l.job);
	tgt_labels_parse(env, sizeof(env) - 1, "0::/docker/" ID "\n", &l);
	CHECK(!strcmp(l.job, "slurm 5") && !strcmp(l.container, "0123456789ab"));
	tgt_labels_parse(env, sizeof(env) - 1, "0::/system.slice/slurmstepd.scope/job_6/step_0\n", &l);
	CHECK(!strcmp(l.job, "slurm 6") && !strcmp(l.slurm_job, "6"));
	l = BY_ENV("POD_NAME=trainer-0\0POD_NAMESPACE=ml\0HOSTNAME=trainer-0.x\0");
	CHECK(!strcmp(l.pod_name, "trainer-0") && !strcmp(l.pod_namespace, "ml") &&
	      !strcmp(l.own_hostname, "trainer-0.x"));
	CHECK(!*l.pod_uid && !*l.job);
}

static void test_kubelet(void)
{
	static const char *const links[] = {
		"short.log", "a_b_c-fff.log", "trainer-0_ml_py-torch-" ID ".log",
		"_",	     "-0123456789ab", "x-0123456789ab_y_z",
	};
	struct tgt_labels l = BY_ENV("POD_NAME=claims\0");
	char dir[] = "/tmp/mxbpf-test-XXXXXX", path[256];
	size_t i;

	CHECK(mkdtemp(dir));
	tgt_labels_kubelet(dir, &l); /* it is in no container */
	tgt_labels_parse("POD_NAME=claims", 16, "0::/kubepods/" ID "\n", &l);
	tgt_labels_kubelet("/nonexistent", &l);
	tgt_labels_kubelet(dir, &l);
	CHECK(!strcmp(l.pod_name, "claims") && !*l.pod_namespace && !*l.container_name);
	for (i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, links[i]);
		CHECK(!symlink("/nonexistent", path));
	}
	tgt_labels_kubelet(dir, &l);
	CHECK(!strcmp(l.pod_name, "trainer-0") && !strcmp(l.pod_namespace, "ml") &&
	      !strcmp(l.container_name, "py-torch"));
	for (i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, links[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* Makes "BEFORE" followed by n times c and "AFTER". */
static char *long_text(const char *before, char c, size_t n, const char *after)
{
	char *text = calloc(1, strlen(before) + n + strlen(after) + 2);

	strcpy(text, before);
	memset(text + strlen(before), c, n);
	strcpy(text + strlen(before) + n, after);
	return text;
}

static void test_hostile(void)
{
	static const char *const numbers[] = {
		"",    "-1",  "+1", " 1",  "1 ", "0x1", "1e3", "2147483648", "99999999999999999999",
		"one", "1\n", "--", "\xff"};
	char *text = long_text("POD_NAME=", 'p', 100000, ""), rank[64];
	struct tgt_labels l = by_env(text, strlen(text) + 1);
	size_t i;

	CHECK(strlen(l.pod_name) == TGT_LABEL_BYTES - 1);
	free(text);
	text = long_text("MASTER_ADDR=", 'h', 5000, "");
	text = realloc(text, 6000);
	strcpy(text + strlen(text) + 1, "MASTER_PORT=29500");
	l = by_env(text, strlen("MASTER_ADDR=") + 5000 + 1 + strlen("MASTER_PORT=29500") + 1);
	CHECK(strlen(l.job) < TGT_JOB_BYTES && !strcmp(l.job + strlen(l.job) - 6, ":29500"));
	free(text);
	text = long_text("0::/slurm/job_", '1', 70000, "/x\n");
	l = by_cgroup(text);
	CHECK(!*l.slurm_job);
	free(text);
	text = long_text("0::/kubepods/pod", 'a', 70000, "\n0::/slurm/job_5\n");
	l = by_cgroup(text);
	CHECK(!*l.pod_uid && !strcmp(l.slurm_job, "5")); /* the line after a long one is read */
	free(text);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		snprintf(rank, sizeof(rank), "RANK=%s", numbers[i]);
		l = by_env(rank, strlen(rank) + 1);
		CHECK(l.rank == -1);
	}
	l = BY_ENV("RANK=2147483647\0SLURM_JOB_ID=7; rm -rf\0");
	CHECK(l.rank == INT32_MAX && !*l.slurm_job && !*l.job);
}

/* Each label keeps its name in a file, and a missing one is not known. */
static void test_metadata(void)
{
	static const char some[] = "{\"labels\":[{\"pid\":5,\"world_size\":2}]}",
			  bad[] = "{\"labels\":[{\"pid\":5,\"rank\":-1}]}";
	struct mdl_labels two[] = {
		{7,
		 {0, MDL_NO_NUMBER, 4294967294u, 1},
		 {"wor\xffker", "0123456789ab", "", "\"", "a", "c", "b", "9", "root", "slurm 9", "MXNet"},
		 "host",
		 NULL,
		 NULL},
		{8,
		 {MDL_NO_NUMBER, MDL_NO_NUMBER, MDL_NO_NUMBER, MDL_NO_NUMBER},
		 {"", "", "", "", "", "", "", "", "", "", ""},
		 "",
		 NULL,
		 NULL},
	};
	const struct mdl_session session = {.labels = two, .nlabels = 2, .unlabelled = 3};
	char *json = rec_meta_write(&session);
	struct mdl_session s;
	struct err e = {0};
	unsigned i;

	CHECK(json && !rec_meta_read(json, strlen(json), &s, &e));
	CHECK(s.nlabels == 2 && s.unlabelled == 3 && s.labels[0].pid == 7 && !strcmp(s.labels[0].hostname, "host"));
	for (i = 0; s.nlabels == 2 && i < MDL_LABEL_NUMBERS; i++)
		CHECK(s.labels[0].numbers[i] == two[0].numbers[i] && s.labels[1].numbers[i] == MDL_NO_NUMBER);
	for (i = 0; s.nlabels == 2 && i < MDL_LABEL_TEXTS; i++) {
		CHECK(!strcmp(s.labels[0].texts[i], two[0].texts[i]) && !*s.labels[1].texts[i]);
		CHECK(json && strstr(json, mdl_label_text_words[i]));
	}
	mdl_session_fini(&s);
	free(json);
	CHECK(!rec_meta_read(some, strlen(some), &s, &e) && s.nlabels == 1 && s.labels[0].pid == 5);
	CHECK(s.labels[0].numbers[MDL_RANK] == MDL_NO_NUMBER && s.labels[0].numbers[MDL_WORLD_SIZE] == 2);
	CHECK(!*s.labels[0].texts[MDL_JOB] && !*s.labels[0].hostname);
	mdl_session_fini(&s);
	CHECK(rec_meta_read(bad, strlen(bad), &s, &e) == -EBADMSG);
	mdl_session_fini(&s);
	CHECK(!rec_meta_read("{}", 2, &s, &e) && !s.nlabels && !s.unlabelled);
	mdl_session_fini(&s);
}

/* Starts a program with other variables, and reads the labels of that process when it has answered. */
static void test_process(void)
{
	char *const args[] = {"cat", NULL}, *const env[] = {"RANK=1", "WORLD_SIZE=2", "USER=else", NULL};
	const uid_t other = geteuid() ? geteuid() : 65534; /* the user nobody, if this test may become it */
	const struct passwd *pw = getpwuid(other);
	struct tgt_labels l;
	struct tgt *t = NULL;
	char byte, user[64];
	int in[2], out[2];
	pid_t pid;

	snprintf(user, sizeof(user), "%u", other);
	if (pw)
		snprintf(user, sizeof(user), "%s", pw->pw_name);
	CHECK(!pipe(in) && !pipe(out));
	pid = fork();
	if (!pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		close(in[1]);
		if (seteuid(other)) /* the real user stays */
			_exit(1);
		execve("/bin/cat", args, env);
		_exit(1);
	}
	close(out[1]);
	CHECK(write(in[1], "", 1) == 1 && read(out[0], &byte, 1) == 1 && !tgt_open(pid, &t, NULL));
	if (t) {
		tgt_labels(t, &l);
		CHECK(has_ranks(&l, 1, -1, 2, -1) && !strcmp(l.user, user));
		CHECK(!*l.pod_name && !*l.role);
	}
	close(in[1]);
	CHECK(waitpid(pid, NULL, 0) == pid);
	if (t) { /* nothing can be read any more */
		tgt_labels(t, &l);
		CHECK(has_ranks(&l, -1, -1, -1, -1) && !*l.user && !*l.job);
	}
	tgt_close(t);
}

/* ---- names of jobs */

static const char *job_name(const char *env, size_t env_bytes, const char *cgroup, const char *program,
			    const char *cmdline, size_t bytes)
{
	static char name[TGT_LABEL_BYTES];
	const struct tgt_job_clues c = {.env = env,
					.env_bytes = env_bytes,
					.cgroup = cgroup,
					.program = program,
					.cmdline = cmdline,
					.cmdline_bytes = bytes};
	struct tgt_labels l;

	tgt_labels_parse(env, env_bytes, cgroup, &l);
	tgt_job_name_parse(&c, &l, name);
	return name;
}
#define OF_ARGS(program, args) job_name("", 0, "0::/\n", program, args "\0", sizeof(args))
#define OF_CLUES(env, cgroup, args)                                                                                    \
	job_name(env, sizeof(env) - 1, cgroup, "/usr/bin/python3.11", args "\0", sizeof(args))
#define PYTHON "/usr/bin/python3.11"
#define POD    "0::/kubepods/burstable/pod" UID "/" ID "\n"

static void is_named(const char *name, const char *expected, unsigned line)
{
	if (strcmp(name, expected))
		printf("# line %u: '%s' instead of '%s'\n", line, name, expected);
	CHECK(!strcmp(name, expected));
}
#define NAMED(name, expected) is_named(name, expected, __LINE__)

static void test_programs(void)
{
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0--port\0"
			      "44879"),
	      "train.py");
	NAMED(OF_ARGS(PYTHON, "python\0-u\0-X\0dev\0/data/train.py"), "train.py");
	NAMED(OF_ARGS(PYTHON, "python\0-m\0pkg.mod\0x.py"), "pkg.mod x.py");
	NAMED(OF_ARGS(PYTHON, "python\0-mpkg.mod"), "pkg.mod");
	NAMED(OF_ARGS(PYTHON, "python\0-c\0import torch"), "");
	NAMED(OF_ARGS(PYTHON, "python"), "");
	NAMED(OF_ARGS(PYTHON, "python\0-\0x.py"), "");
	NAMED(OF_ARGS(PYTHON, "python\0/dev/fd/63"), "");
	NAMED(OF_ARGS(PYTHON, "python\0/tmp/tmpab12cd_9.py"), "");
	NAMED(OF_ARGS(PYTHON, "python\0/tmp/tmp1/train.py"), "train.py");
	NAMED(OF_ARGS(PYTHON, "python\0/v/lib/python3.11/site-packages/torch/_inductor/compile_worker/__main__.py"),
	      "");
	NAMED(OF_ARGS("/opt/bin/trainer", "/opt/bin/trainer\0--fast"), "trainer");
	NAMED(OF_ARGS("/opt/bin/trainer", ""), "");
	/* A launcher has the name of its ranks. */
	NAMED(OF_ARGS(PYTHON, "python\0/v/bin/torchrun\0--nproc-per-node\0"
			      "2\0--rdzv-id=17\0train.py\0x.py"),
	      "train.py x.py");
	NAMED(OF_ARGS(PYTHON, "python\0-m\0torch.distributed.run\0--standalone\0d/train.py"), "train.py");
	NAMED(OF_ARGS(PYTHON, "python\0/v/bin/torchrun\0--standalone\0-m\0pkg.mod\0--x"), "pkg.mod --x");
	NAMED(OF_ARGS(PYTHON, "python\0/v/bin/accelerate\0launch\0train.py"), "train.py");
	NAMED(OF_ARGS(PYTHON, "python\0/v/bin/torchrun\0--standalone"), "torchrun");
}

static void test_arguments(void)
{
	/* What tells jobs apart. */
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0--model\0resnet50\0--lr=1e-4\0--batch-size\0"
			      "256\0--amp"),
	      "train.py --model=resnet50 --lr=1e-4 --batch-size=256 --amp");
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0/etc/jobs/bert.yaml\0"
			      "20"),
	      "train.py bert.yaml");
	NAMED(OF_ARGS(PYTHON, "python\0-m\0pkg.mod\0--config\0conf/a.yaml"), "pkg.mod --config=a.yaml");
	/* What is another one at each start. */
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0--local-rank=3\0--master_port\0"
			      "29500\0--seed\0"
			      "7\0--resume\0last.pt\0--run-name\0x\0--data=/tmp/d"),
	      "train.py");
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0--from=20261128\0--shard\0localhost:8080\0--state\0tmpab12cd_9"),
	      "train.py");
	/* What is nobody's business. */
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0--api-key\0hunter\0--wandb_token=abc\0--ok"), "train.py --ok");
	/* What is too long is left out in whole. */
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0--b"),
	      "train.py --b");
	NAMED(OF_ARGS(PYTHON, "python\0train.py\0-\0--\0=\0--=\0-=x"), "train.py - -=x");
}

static void test_schedulers(void)
{
	/* What a person has said counts most. */
	NAMED(OF_CLUES("SLURM_JOB_NAME=llama\0MXBPF_JOB_NAME=mine\0", POD, "python\0train.py"), "mine");
	NAMED(OF_CLUES("SLURM_JOB_NAME=llama\0SLURM_JOB_ID=77\0", "0::/\n", "python\0train.py"), "llama");
	NAMED(OF_CLUES("MASTER_ADDR=localhost\0MASTER_PORT=44879\0", "0::/\n", "python\0train.py"), "train.py");
	/* Pods: of a Job, an indexed Job, a Deployment, a CronJob, a PyTorchJob, a StatefulSet, and one of its own. */
	NAMED(OF_CLUES("POD_NAME=train-x7k2p\0", POD, "python\0a.py"), "train");
	NAMED(OF_CLUES("HOSTNAME=train-3-x7k2p\0", POD, "python\0a.py"), "train");
	NAMED(OF_CLUES("POD_NAME=train-6d4cf56db6-x7k2p\0", POD, "python\0a.py"), "train");
	NAMED(OF_CLUES("POD_NAME=nightly-29384756-x7k2p\0", POD, "python\0a.py"), "nightly");
	NAMED(OF_CLUES("POD_NAME=bert-worker-12\0", POD, "python\0a.py"), "bert");
	NAMED(OF_CLUES("POD_NAME=bert-master-0\0", POD, "python\0a.py"), "bert");
	NAMED(OF_CLUES("POD_NAME=bert-1\0RANK=1\0WORLD_SIZE=2\0", POD, "python\0a.py"), "bert");
	NAMED(OF_CLUES("POD_NAME=resnet-50\0", POD, "python\0a.py"), "resnet-50");
	NAMED(OF_CLUES("POD_NAME=train\0", POD, "python\0a.py"), "train");
	/* Units; one that starts jobs of others is none. */
	NAMED(OF_CLUES("", "0::/system.slice/train-night.service\n", "python\0a.py"), "train-night");
	NAMED(OF_CLUES("", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/t.service\n", "python\0a.py"),
	      "t");
	NAMED(OF_CLUES("", "0::/user.slice/user-1000.slice/session-3.scope\n", "python\0a.py"), "a.py");
	NAMED(OF_CLUES("", "0::/user.slice/user@1000.service/app.slice/run-r1234.service\n", "python\0a.py"), "a.py");
	NAMED(OF_CLUES("", "0::/system.slice/cron.service\n", "python\0a.py"), "a.py");
}

int main(void)
{
	TEST("every form of a control group gives its container, pod and Slurm job, and nothing else does")
	test_cgroups();
	TEST("rank, local rank and size are those of one launcher, the innermost")
	test_ranks();
	TEST("a process of an MXNet job has the number of its role")
	test_roles();
	TEST("the job is the Slurm job, the pod, the container, or where its processes meet, the first that is known")
	test_job();
	TEST("a container has the names that the kubelet gives it, and none if the kubelet has no link for it")
	test_kubelet();
	TEST("long values are cut, and what is no number is no rank")
	test_hostile();
	TEST("a process has the labels of the environment with which its program began, and its user")
	test_process();
	TEST("labels in a recording are the same when they are read, and older recordings have none")
	test_metadata();
	TEST("a job has the name of its program, and a launcher that of what it launches")
	test_programs();
	TEST("arguments that stay the same tell the jobs of one script apart, and secrets are not among them")
	test_arguments();
	TEST("a name that a person or the scheduler gave counts more, without what is new at each start")
	test_schedulers();
	UNIT_MAIN_END;
}
