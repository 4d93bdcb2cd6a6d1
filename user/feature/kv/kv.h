/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a parameter store, by key. */
#ifndef FEATURE_KV_H
#define FEATURE_KV_H

#include "model/feature.h"

extern const struct mdl_feature feature_kv;
extern const struct view_sheet sheet_kv;

#endif
