/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_IMAGE_H
#define AGENT_IMAGE_H

#include <stdint.h>

/* The shared object built from user/agent/lib/. */
extern const unsigned char agent_image[];
extern const uint64_t agent_image_bytes;

/* The NUL-terminated texts of enter.py and failed.py. */
extern const char agent_enter[], agent_failed[];

#endif
