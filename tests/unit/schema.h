/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a JSON document against a JSON Schema. Supports only the keywords that the published schema uses. */
#ifndef SCHEMA_H
#define SCHEMA_H

#include <cjson/cJSON.h>

#include "read_file.h"
#include "view/sheet.h"

FREES(json_freed, cJSON, cJSON_Delete)

/* Returns the published schema. The caller frees it. */
static inline char *read_schema(void)
{
	char path[] = "/tmp/mxbpf-test-schema-XXXXXX", *text;
	struct err e = {0};
	struct out *o;

	close(mkstemp(path));
	if (out_open(path, false, &o, &e))
		return NULL;
	view_put_schema(o);
	out_commit(o, &e);
	text = read_file(path);
	unlink(path);
	return text;
}

static inline bool has_type(const cJSON *v, const char *type)
{
	if (!strcmp(type, "integer"))
		return cJSON_IsNumber(v) &&
		       (v->valuedouble >= 1ull << 53 || v->valuedouble == (double)(int64_t)v->valuedouble);
	return (!strcmp(type, "object") && cJSON_IsObject(v)) || (!strcmp(type, "array") && cJSON_IsArray(v)) ||
	       (!strcmp(type, "string") && cJSON_IsString(v)) || (!strcmp(type, "null") && cJSON_IsNull(v)) ||
	       (!strcmp(type, "number") && cJSON_IsNumber(v)) || (!strcmp(type, "boolean") && cJSON_IsBool(v));
}

static inline bool one_of(const cJSON *list, const cJSON *v, bool types)
{
	const cJSON *p;

	cJSON_ArrayForEach(p, list) if (types ? has_type(v, p->valuestring) : cJSON_Compare(p, v, true)) return true;
	return false;
}

static inline bool valid(const cJSON *root, const cJSON *schema, const cJSON *v);

static inline bool valid_members(const cJSON *root, const cJSON *schema, const cJSON *v)
{
	const cJSON *props = cJSON_GetObjectItem(schema, "properties"), *p, *sub;
	const cJSON *more = cJSON_GetObjectItem(schema, "additionalProperties");

	cJSON_ArrayForEach(p, cJSON_GetObjectItem(schema, "required")) if (!cJSON_GetObjectItemCaseSensitive(
										   v, p->valuestring)) return false;
	if (!cJSON_IsObject(v))
		return true;
	cJSON_ArrayForEach(p, v)
	{
		sub = cJSON_GetObjectItemCaseSensitive(props, p->string);
		if (!sub && cJSON_IsFalse(more))
			return false;
		if (!valid(root, sub ? sub : more, p))
			return false;
	}
	return true;
}

/* Checks v against the keywords of JSON Schema that the published schema uses. */
static inline bool valid(const cJSON *root, const cJSON *schema, const cJSON *v)
{
	const cJSON *ref = cJSON_GetObjectItem(schema, "$ref"), *type = cJSON_GetObjectItem(schema, "type"), *p;
	const cJSON *any = cJSON_GetObjectItem(schema, "anyOf");
	const cJSON *only = cJSON_GetObjectItem(schema, "const"), *list = cJSON_GetObjectItem(schema, "enum");

	if (!schema)
		return true;
	if (ref && !valid(root, cJSON_GetObjectItem(cJSON_GetObjectItem(root, "$defs"), ref->valuestring + 8), v))
		return false;
	if (any) {
		cJSON_ArrayForEach(p, any) if (valid(root, p, v)) return true;
		return false;
	}
	if (cJSON_IsString(type) ? !has_type(v, type->valuestring) : type && !one_of(type, v, true))
		return false;
	if ((only && !cJSON_Compare(only, v, true)) || (list && !one_of(list, v, false)))
		return false;
	p = cJSON_GetObjectItem(schema, "minimum");
	if (p && v->valuedouble < p->valuedouble)
		return false;
	if (cJSON_IsArray(v))
		cJSON_ArrayForEach(p, v) if (!valid(root, cJSON_GetObjectItem(schema, "items"), p)) return false;
	return valid_members(root, schema, v);
}

static inline bool follows_schema(const char *json)
{
	FREED(memory_freed) char *text = read_schema();
	FREED(json_freed) cJSON *schema = cJSON_Parse(text), *root = cJSON_Parse(json);

	return schema && root && valid(schema, schema, root);
}

#endif
