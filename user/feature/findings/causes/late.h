/* SPDX-License-Identifier: Apache-2.0 */
/* The rank for which the others wait, by samples of the main threads of all ranks, and why it is late. */
#ifndef FEATURE_FINDINGS_CAUSES_LATE_H
#define FEATURE_FINDINGS_CAUSES_LATE_H

#include "feature/findings/findings.h"

int late_find(const struct mdl *m, struct facts *f); /* who it is. 0 or -ENOMEM */
int make_late(struct mdl *m, const struct mdl_session *s, struct facts *f);
void late_put(const struct facts *f, struct buf *b); /* "; it waits for the disk ...", or nothing */

#endif
