// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a job that is the same when it is started again: no process number, port or launch id is in it. What a
 * person has said counts most, then the scheduler, then the program.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/labels.h"
#include "target/priv.h"

#define ARGS_MAX   64
#define ARGS_BYTES (16u << 10)
/* Kubernetes makes random parts of names of these, without vowels. */
#define SAFE "bcdfghjklmnpqrstvwxz2456789"

static bool job_name_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_one_of(const char *text, const char *const *words)
{
	while (*words && strcmp(text, *words))
		words++;
	return *words;
}

/* ---- Kubernetes */

/* Removes "-PART" from the end if the part has `least` to `most` characters, all of these. */
static bool strip_part(char *name, const char *characters, size_t least, size_t most)
{
	char *dash = strrchr(name, '-');
	const size_t n = dash ? strlen(dash + 1) : 0;

	if (!dash || dash == name || n < least || n > most || dash[1 + strspn(dash + 1, characters)])
		return false;
	*dash = '\0';
	return true;
}

static bool strip_word(char *name, const char *const *words)
{
	char *dash = strrchr(name, '-');

	if (!dash || dash == name || !is_one_of(dash + 1, words))
		return false;
	*dash = '\0';
	return true;
}

/*
 * What owns a pod, by the pod's name: "train-x7k2p" of a Job, "train-6d4cf56db6-x7k2p" of a Deployment,
 * "train-worker-3" of a PyTorchJob. A number at the end is that of a pod if the rest says so, or if the job has several
 * ranks.
 */
static void name_owner(const char *pod, bool ranks, char *name)
{
	static const char *const roles[] = {"master", "worker",	   "launcher", "server", "scheduler",
					    "chief",  "evaluator", "ps",       NULL};
	bool random;
	char *dash;

	snprintf(name, TGT_LABEL_BYTES, "%s", pod);
	random = strip_part(name, SAFE, 5, 5);
	if (random) {
		strip_part(name, SAFE, 8, 10);
		strip_part(name, "0123456789", 1, 12);
	}
	dash = strrchr(name, '-');
	if (!random && dash && dash != name && dash[1] && !dash[1 + strspn(dash + 1, "0123456789")]) {
		*dash = '\0';
		if (!strip_word(name, roles) && !ranks)
			*dash = '-';
		return;
	}
	strip_word(name, roles);
}

/* ---- systemd */

/* Units that start jobs, and are none. */
static bool is_job(const char *unit)
{
	static const char *const others[] = {"ssh",    "sshd",	     "cron",	"crond",      "atd",
					     "docker", "containerd", "kubelet", "slurmd",     "slurmstepd",
					     "dbus",   "supervisor", "k3s",	"rke2-agent", "jupyterhub",
					     "gdm",    "lightdm",    "init",	NULL};

	return !is_one_of(unit, others) && !job_name_begins(unit, "user@") && !job_name_begins(unit, "getty@") &&
	       !job_name_begins(unit, "ssh@") && !job_name_begins(unit, "sshd@") &&
	       !job_name_begins(unit, "systemd-") && !job_name_begins(unit, "run-") &&
	       !job_name_begins(unit, "org.gnome.") && !job_name_begins(unit, "app-");
}

/* The innermost "/NAME.service" of a line of /proc/PID/cgroup. */
static void name_unit(const char *cgroup, char *name)
{
	static const char suffix[] = ".service";
	const char *part = cgroup, *end;
	char unit[TGT_LABEL_BYTES];
	size_t n;

	for (; (part = strchr(part, '/')); part = end) {
		part++;
		end = part + strcspn(part, "/\n");
		n = (size_t)(end - part);
		if (n < sizeof(suffix) || n >= sizeof(unit) || strncmp(end - strlen(suffix), suffix, strlen(suffix)))
			continue;
		snprintf(unit, sizeof(unit), "%.*s", (int)(n - strlen(suffix)), part);
		if (is_job(unit))
			snprintf(name, TGT_LABEL_BYTES, "%s", unit);
	}
}

/* ---- programs */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Python's tempfile makes such names: "tmp" and eight random characters. */
static bool is_temporary(const char *name)
{
	return job_name_begins(name, "tmp") && strspn(name + 3, "abcdefghijklmnopqrstuvwxyz0123456789_") == 8 &&
	       (!name[11] || name[11] == '.');
}

/* A program that has no file of a lasting name, or that is a part of PyTorch, has the name of its parent's job. */
static void name_script(const char *path, char *name)
{
	const char *last = last_part(path);

	if (!*last || is_temporary(last) || !strcmp(path, "-") || job_name_begins(path, "/dev/") ||
	    job_name_begins(path, "/proc/") || strstr(path, "-packages/torch/"))
		return;
	snprintf(name, TGT_LABEL_BYTES, "%s", last);
}

static void name_module(const char *module, char *name)
{
	if (module && *module)
		snprintf(name, TGT_LABEL_BYTES, "%s", module);
}

/* ---- arguments, by which one script is several jobs */

#define VALUE_MAX    40
#define DIGITS_MAX   4 /* in a row: more are a date, a port, a process number or a step */
#define WORDS_OF_OPT "-_."

/* Options whose values are others at each start, or are nobody's business. */
static const char *const hidden[] = {
	"port",	   "rdzv",   "master",	   "addr",	  "address", "host",	    "url",  "uri",
	"rank",	   "node",   "nodes",	   "id",	  "run",     "name",	    "tag",  "seed",
	"resume",  "ckpt",   "checkpoint", "checkpoints", "out",     "output",	    "log",  "logs",
	"logging", "save",   "tmp",	   "temp",	  "cache",   "date",	    "time", "key",
	"token",   "secret", "pass",	   "password",	  "auth",    "credentials", "user", NULL,
};

static bool is_hidden(const char *option)
{
	char word[32];
	size_t n;

	for (option += strspn(option, "-"); *option && *option != '=';
	     option += n + !!strchr(WORDS_OF_OPT, option[n])) {
		n = strcspn(option, WORDS_OF_OPT "=");
		snprintf(word, sizeof(word), "%.*s", (int)n, option);
		if (is_one_of(word, hidden))
			return true;
		if (!option[n])
			return false;
	}
	return false;
}

/* A value that is likely to be the same at the next start: a short word or number, or the last part of such a path. */
static bool is_lasting(const char *value)
{
	size_t i, digits = 0;

	if (!*value || strlen(value) > VALUE_MAX || is_temporary(value))
		return false;
	for (i = 0; value[i]; i++) {
		if (!isalnum((unsigned char)value[i]) && !strchr("._,+-", value[i]))
			return false;
		digits = isdigit((unsigned char)value[i]) ? digits + 1 : 0;
		if (digits > DIGITS_MAX)
			return false;
	}
	return true;
}

/* These append what fits in whole. */
static void put_word(char *name, const char *word, char separator)
{
	const size_t used = strlen(name);

	if (used + 1 + strlen(word) < TGT_LABEL_BYTES)
		snprintf(name + used, TGT_LABEL_BYTES - used, "%c%s", separator, word);
}

static void put_option(char *name, const char *option, const char *value)
{
	char text[TGT_LABEL_BYTES];
	const size_t len = strcspn(option, "=");

	if (len + 2 + (value ? strlen(value) : 0) >= sizeof(text))
		return;
	snprintf(text, sizeof(text), "%.*s%s%s", (int)len, option, value ? "=" : "", value ? value : "");
	put_word(name, text, ' ');
}

/* Returns the value of the option args[*i], or NULL, and moves *i to the last argument that was used. */
static const char *value_of(const char *const *args, size_t n, size_t *i)
{
	const char *equal = strchr(args[*i], '=');

	if (equal)
		return equal + 1;
	return *i + 1 < n && args[*i + 1][0] != '-' ? args[++*i] : NULL;
}

static bool is_kept(const char *value)
{
	return !job_name_begins(value, "/tmp/") && is_lasting(last_part(value));
}

/* args: those of the script. What may change is left out with its option. */
static void name_args(const char *const *args, size_t n, char *name)
{
	const char *option, *value;
	size_t i;

	for (i = 0; *name && i < n; i++) {
		option = args[i];
		if (*option != '-') {
			if (isalpha((unsigned char)*last_part(option)) && is_kept(option))
				put_word(name, last_part(option), ' ');
			continue;
		}
		value = value_of(args, n, &i);
		if (is_hidden(option) || (value && !is_kept(value)))
			continue;
		put_option(name, option, value ? last_part(value) : NULL);
	}
}

/* Starts the ranks of a job, which have the name of their own script. */
static bool is_launcher(const char *name)
{
	static const char *const launchers[] = {"torchrun",
						"torch.distributed.run",
						"torch.distributed.launch",
						"torch.distributed.launcher",
						"accelerate",
						"accelerate.commands.launch",
						"deepspeed",
						"deepspeed.launcher.runner",
						"deepspeed.launcher.launch",
						"horovodrun",
						NULL};

	return is_one_of(name, launchers);
}

/* The options of launchers are not known, so a script is known by its suffix, and a module by the -m before it. */
static void name_launched(const char *const *args, size_t n, char *name)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const size_t len = strlen(args[i]);

		if (args[i][0] != '-' && len > 3 && !strcmp(args[i] + len - 3, ".py")) {
			name_script(args[i], name);
			name_args(args + i + 1, n - i - 1, name);
			return;
		}
		if ((!strcmp(args[i], "-m") || !strcmp(args[i], "--module")) && i + 1 < n && args[i + 1][0] != '-') {
			name_module(args[i + 1], name);
			name_args(args + i + 2, n - i - 2, name);
			return;
		}
	}
}

/* args: those of Python, after its own name. */
static void name_python(const char *const *args, size_t n, char *name)
{
	size_t i = 0;

	while (i < n && args[i][0] == '-' && args[i][1] && args[i][1] != 'c' && args[i][1] != 'm')
		i += !strcmp(args[i], "-X") || !strcmp(args[i], "-W") ? 2 : 1;
	if (i >= n || job_name_begins(args[i], "-c")) /* also processes that multiprocessing spawns */
		return;
	if (!job_name_begins(args[i], "-m"))
		name_script(args[i], name);
	else if (args[i][2])
		name_module(args[i] + 2, name);
	else
		name_module(++i < n ? args[i] : NULL, name);
	if (is_launcher(name))
		name_launched(args + i + 1, i + 1 < n ? n - i - 1 : 0, name);
	else
		name_args(args + i + 1, i + 1 < n ? n - i - 1 : 0, name);
}

/* cmdline: arguments that end with a NUL each; one more NUL follows the bytes. */
static void name_program(const char *program, const char *cmdline, size_t bytes, char *name)
{
	const char *args[ARGS_MAX];
	size_t n = 0, at;

	for (at = 0; at < bytes && n < ARGS_MAX; at += strlen(cmdline + at) + 1)
		args[n++] = cmdline + at;
	if (!n)
		return;
	if (job_name_begins(last_part(program), "python") || job_name_begins(last_part(program), "pypy"))
		name_python(args + 1, n - 1, name);
	else
		name_script(args[0], name);
}

void tgt_job_name_parse(const struct tgt_job_clues *c, const struct tgt_labels *l, char name[TGT_LABEL_BYTES])
{
	const char *given = tgt_env_find(c->env, c->env_bytes, "MXBPF_JOB_NAME");
	const char *slurm = tgt_env_find(c->env, c->env_bytes, "SLURM_JOB_NAME");
	const char *pod = *l->pod_name ? l->pod_name : *l->pod_uid ? l->own_hostname : "";

	*name = '\0';
	if (given && *given)
		snprintf(name, TGT_LABEL_BYTES, "%s", given);
	else if (slurm && *slurm)
		snprintf(name, TGT_LABEL_BYTES, "%s", slurm);
	else if (*pod)
		name_owner(pod, l->world_size > 1, name);
	else
		name_unit(c->cgroup, name);
	if (!*name)
		name_program(c->program, c->cmdline, c->cmdline_bytes, name);
}

void tgt_job_name(const struct tgt *t, const char *env, size_t env_bytes, const char *cgroup, struct tgt_labels *l)
{
	struct buf cmdline = {0};
	char program[PATH_MAX];
	const ssize_t n = readlinkat(t->procfd, "exe", program, sizeof(program) - 1);
	const bool has = !tgt_slurp(t->procfd, "cmdline", ARGS_BYTES, &cmdline);
	const struct tgt_job_clues c = {.env = env,
					.env_bytes = env_bytes,
					.cgroup = cgroup,
					.program = program,
					.cmdline = has ? cmdline.data : "",
					.cmdline_bytes = has ? cmdline.len : 0};

	program[n > 0 ? n : 0] = '\0';
	tgt_job_name_parse(&c, l, l->job_name);
	buf_fini(&cmdline);
}
