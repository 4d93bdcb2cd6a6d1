/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON with cJSON, which does not say why it fails. */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <cjson/cJSON.h>
#include <stddef.h>

/*
 * Returns the value of a text, which belongs to the caller (cJSON_Delete()), and stores 0 in *err. Returns NULL with
 * -EBADMSG if the text is no JSON, and with -ENOMEM if there was no memory.
 */
cJSON *json_read(const char *text, size_t len, int *err);

#endif
