/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of a process: its place in a distributed job, and what has started it. They are read from the environment at
 * the start of its program, from /proc/PID/cgroup and from /proc/PID/status. The process can set most of them to
 * anything, so texts are cut at the sizes below, and outputs escape them.
 */
#ifndef TARGET_LABELS_H
#define TARGET_LABELS_H

#include "target/target.h"

#define TGT_LABEL_BYTES	  128 /* of a text with its NUL; longer values are cut */
#define TGT_POD_UID_BYTES 37
#define TGT_JOB_BYTES	  96

/* Numbers are -1 and texts are "" if they are not known. */
struct tgt_labels {
	int32_t rank, local_rank, world_size; /* all three as one launcher has set them; MXNet counts them by role */
	int32_t group_rank;		      /* the number of the machine, or of the launcher on it */
	const char *rank_variable;	      /* that has the rank, such as "RANK"; static; NULL: there is none */
	char role[TGT_LABEL_BYTES];	      /* DMLC_ROLE */
	char container[TGT_CONTAINER_BYTES];  /* as in struct tgt_container */
	char pod_uid[TGT_POD_UID_BYTES];      /* of its Kubernetes pod, with dashes */
	/* As the kubelet of the machine calls them; else POD_NAME, POD_NAMESPACE, "". */
	char pod_name[TGT_LABEL_BYTES], pod_namespace[TGT_LABEL_BYTES], container_name[TGT_LABEL_BYTES];
	char own_hostname[TGT_LABEL_BYTES]; /* HOSTNAME, which is often the name of the pod or the container */
	char slurm_job[TGT_LABEL_BYTES];    /* number of its Slurm job */
	char user[TGT_LABEL_BYTES];	    /* effective user by /etc/passwd, or the number */
	/*
	 * Equal for the processes of one job on a machine: "slurm 123", "pod UID", "container ID", or the address and
	 * port where they meet. The first that is known counts.
	 */
	char job[TGT_JOB_BYTES];
	/*
	 * For people: the same when the job is started again, and when it is started on another machine. Two jobs can
	 * have the same one. "": the name is that of the parent's job.
	 */
	char job_name[TGT_LABEL_BYTES];
};

/* Reads the labels that can be read. */
void tgt_labels(const struct tgt *t, struct tgt_labels *l);

/* Reads the labels of a process that is not open, for walks over processes; without user and names of the pod. */
void tgt_peek_labels(pid_t pid, struct tgt_labels *l);

/*
 * Does what tgt_labels() does for texts that the caller has read. env is the text of /proc/PID/environ: each variable
 * ends with a NUL, and one more NUL follows the env_bytes. cgroup is the text of /proc/PID/cgroup. The user stays
 * unknown.
 */
void tgt_labels_parse(const char *env, size_t env_bytes, const char *cgroup, struct tgt_labels *l);

/*
 * What names a job, as texts that the caller has read: the environment and the control groups as above, the path of the
 * program, and the text of /proc/PID/cmdline, which one more NUL follows.
 */
struct tgt_job_clues {
	const char *env, *cgroup, *program, *cmdline;
	size_t env_bytes, cmdline_bytes;
};
/* Finds the name by the clues and the other labels. */
void tgt_job_name_parse(const struct tgt_job_clues *c, const struct tgt_labels *l, char name[TGT_LABEL_BYTES]);

/*
 * Takes the names of the container's pod from a folder in which the kubelet has a link for each container,
 * POD_NAMESPACE_CONTAINER-ID.log. Does nothing if there is none.
 */
#define TGT_KUBELET_LINKS "/var/log/containers"
void tgt_labels_kubelet(const char *folder, struct tgt_labels *l);

#endif
