/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of an interval, one for each set of labels, as requests of what receives them. */
#ifndef CMD_SERVE_PUSH_PROFILE_H
#define CMD_SERVE_PUSH_PROFILE_H

#include "base/buf.h"
#include "metrics/metrics.h"
#include "push/push.h"

/* The form of the requests follows from the end of the URL's path. Returns its number, or -1 if it is none. */
int push_profile_form(const char *url);
push_refused_fn push_profile_refused(int form); /* for push_opts.refused */
/* Appends struct push_request: none if no Python thread was seen. Returns 0 or -ENOMEM. */
int push_profile_make(const struct met *metrics, const struct mdl_interval *in, int form, struct buf *batch);

#endif
