// SPDX-License-Identifier: Apache-2.0
/*
 * Loads a libcupti into a process that has mapped none: the one that belongs to the process's libcudart, else one that
 * the loader finds. It is never newer than the driver.
 */
#include <dlfcn.h>
#include <string.h>

#include "cupti.h"
#include "fork.h"

#define LIBCUDART "libcudart"
#define LIBCUPTI  "libcupti.so."

/* The names of libcupti, with the version of CUDA as cuDriverGetVersion() counts. Newer ones come first. */
static const struct {
	uint32_t cuda;
	const char *ending;
} names[] = {
	{13000, "13"},	 {12000, "12"},	  {11080, "11.8"}, {11070, "11.7"}, {11060, "11.6"}, {11050, "11.5"},
	{11040, "11.4"}, {11030, "11.3"}, {11020, "11.2"}, {11010, "11.1"}, {11000, "11.0"},
};

/*
 * Places seen from the directory of libcudart: that directory (wheels of CUDA 13, conda), wheels of CUDA 11 and 12, the
 * CUDA Toolkit, and NVIDIA's wheels seen from a library of PyTorch or MXNet that brings a libcudart of its own.
 */
static const char *const places[] = {
	"",
	"/../../cuda_cupti/lib",
	"/../cupti/lib",
	"/../extras/CUPTI/lib64",
	"/../../extras/CUPTI/lib64",
	"/../../../extras/CUPTI/lib64",
	"/../nvidia/cu13/lib",
	"/../nvidia/cuda_cupti/lib",
	"/../../nvidia/cu13/lib",
	"/../../nvidia/cuda_cupti/lib",
};

static bool cupti_find_load(const char *path)
{
	const uint64_t at = agent_dso_of_libc("dlopen");
	void *(*open)(const char *, int);
	bool entered, opened;

	memcpy(&open, &at, sizeof(open));
	if (!*path || !open)
		return false;
	entered = agent_fork_enter_loader();
	opened = open(path, RTLD_NOW | RTLD_LOCAL);
	agent_fork_leave_loader(entered);
	return opened;
}

static bool append(char to[512], const char *text)
{
	const size_t at = strlen(to), n = strlen(text);

	if (at + n >= 512)
		return false;
	memcpy(to + at, text, n + 1);
	return true;
}

/* Loads a libcupti of one major version of CUDA, or of any (0), from "DIRECTORY/" or from where the loader looks ("").
 */
static bool load_from(const char *directory, uint32_t major, uint32_t driver)
{
	char path[512];
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((driver && names[i].cuda > driver) || (major && names[i].cuda / 1000 != major))
			continue;
		path[0] = '\0';
		if (append(path, directory) && append(path, LIBCUPTI) && append(path, names[i].ending) &&
		    cupti_find_load(path))
			return true;
	}
	return false;
}

/* "libcudart.so.11.0", "libcudart-d0da41ae.so.11.0"; 0: the name does not say it */
static uint32_t major_of(const char *path)
{
	const char *so = strstr(strrchr(path, '/') ? strrchr(path, '/') : path, ".so.");
	uint32_t major = 0;

	for (so = so ? so + strlen(".so.") : ""; *so >= '0' && *so <= '9' && major < 1000; so++)
		major = 10 * major + (uint32_t)(*so - '0');
	return major;
}

static bool load_beside(const char *cudart, uint32_t major, uint32_t driver)
{
	const char *slash = strrchr(cudart, '/');
	const size_t n = slash ? (size_t)(slash - cudart) : 0;
	char directory[512];
	unsigned i;

	for (i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		memcpy(directory, cudart, n);
		directory[n] = '\0';
		if (append(directory, places[i]) && append(directory, "/") && load_from(directory, major, driver))
			return true;
	}
	return false;
}

/* Returns the driver's version of CUDA, or 0 if it is not known. It works before cuInit() has returned. */
static uint32_t driver_version(void)
{
	int (*get)(int *version), version = 0;
	struct agent_dso d;

	if (!agent_dso_find("libcuda.so.1", &d) || !agent_dso_get(&d, "cuDriverGetVersion", &get) || get(&version))
		return 0;
	return version > 0 ? (uint32_t)version : 0;
}

bool cupti_load(struct mxbpf_gpu_shared *g)
{
	struct agent_dso d;
	uint32_t major, driver;

	if (g->library[0])
		return cupti_find_load(g->library);
	g->driver = driver = driver_version();
	if (!agent_dso_find(LIBCUDART, &d))
		d.path[0] = '\0';
	memcpy(g->path, d.path, sizeof(g->path)); /* for the message, if there is no libcupti */
	major = major_of(d.path);
	return load_beside(d.path, major, driver) || (major && load_from("", major, driver)) ||
	       load_from("", 0, driver);
}
