/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the TCP connections of ranks, which /proc shows: data that was sent and has not arrived. */
#ifndef FEATURE_LINES_LOAD_NETWORK_H
#define FEATURE_LINES_LOAD_NETWORK_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct network;

struct network *network_new(void); /* NULL: out of memory, which the others take for no network */
void network_free(struct network *n);
/* Forgets the processes that are watched, to watch them anew. Returns false if that is too soon: they stay. */
bool network_forget(struct network *n);
void network_watch(struct network *n, pid_t pid);
/* Appends struct mxbpf_network of the processes that are watched. Without memory a look is lost, which is one of many.
 */
void network_look(struct network *n, struct buf *recs);

#endif
