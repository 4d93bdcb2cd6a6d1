// SPDX-License-Identifier: Apache-2.0
/* The list of GPUs, and their names in the driver's files: one folder for each GPU, named after its place on the bus.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml/priv.h"

struct nvml_gpu *nvml_gpu_at(struct nvml_list *l, uint32_t domain, uint32_t bus, uint32_t device)
{
	struct nvml_gpu *g;
	unsigned i;

	for (i = 0; i < l->n; i++) {
		g = &l->gpus[i];
		if (g->domain == domain && g->bus == bus && g->device == device)
			return g;
	}
	if (l->n == NVML_GPUS_MAX)
		return NULL;
	g = &l->gpus[l->n++];
	*g = (struct nvml_gpu){.index = i, .domain = domain, .bus = bus, .device = device};
	return g;
}

/* "Model: \t\t NVIDIA H100\n": copies what stands behind the key. */
static void take_line(const char *line, const char *key, char to[NVML_TEXT_BYTES])
{
	const size_t n = strlen(key);

	if (strncmp(line, key, n))
		return;
	line += n;
	line += strspn(line, " \t");
	snprintf(to, NVML_TEXT_BYTES, "%.*s", (int)strcspn(line, "\n"), line);
}

static void read_file(const char *path, struct nvml_gpu *g)
{
	FILE *f = fopen(path, "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		take_line(line, "Model:", g->model);
		take_line(line, "GPU UUID:", g->uuid);
	}
	if (f)
		fclose(f);
	if (strchr(g->uuid, '?')) /* "GPU-????????-...": the driver has not looked at the GPU yet */
		*g->uuid = '\0';
}

void nvml_read_names(const char *folder, struct nvml_list *l)
{
	struct dirent **all = NULL;
	const int n = scandir(folder, &all, NULL, alphasort);
	unsigned domain, bus, device;
	struct nvml_gpu *g;
	char path[512];
	int i;

	for (i = 0; i < n; i++) {
		if (sscanf(all[i]->d_name, "%x:%x:%x", &domain, &bus, &device) == 3 &&
		    (g = nvml_gpu_at(l, domain, bus, device))) {
			snprintf(path, sizeof(path), "%s/%s/information", folder, all[i]->d_name);
			read_file(path, g);
		}
		free(all[i]);
	}
	free(all);
}
