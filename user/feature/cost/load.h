/* SPDX-License-Identifier: Apache-2.0 */
/* What a session does about the cost of watching before its window. */
#ifndef FEATURE_COST_LOAD_H
#define FEATURE_COST_LOAD_H

struct err;
struct session;

/* Before the first process is attached: chooses the probes that are attached to it. 0, or -errno with e set. */
int cost_prepare(struct session *ses, struct err *e);
/* Before the window begins: attaches the other probes if they fit into --max-overhead. */
void cost_begin(struct session *ses);

#endif
