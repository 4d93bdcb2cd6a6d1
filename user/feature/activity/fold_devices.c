// SPDX-License-Identifier: Apache-2.0
/* How devices of GPUs are called. */
#include <stdio.h>
#include <string.h>

#include "feature/activity/activity.h"

bool activity_is_instance(const struct mxbpf_gpu_device *d)
{
	return memcmp(d->uuid, d->whole_uuid, sizeof(d->uuid)) != 0;
}

const char *activity_uuid(const struct mxbpf_gpu_device *d, bool whole, char buf[ACTIVITY_UUID_BYTES])
{
	static const __u8 none[sizeof(d->uuid)];
	const __u8 *u = whole ? d->whole_uuid : d->uuid;
	size_t at = 4, i;

	buf[0] = '\0';
	if (!memcmp(u, none, sizeof(none)))
		return buf;
	strcpy(buf, !whole && activity_is_instance(d) ? "MIG-" : "GPU-");
	for (i = 0; i < sizeof(d->uuid); i++)
		at += (size_t)snprintf(buf + at, ACTIVITY_UUID_BYTES - at, "%s%02x",
				       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	return buf;
}
