// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include "read_file.h"

static char path[] = "/tmp/test_json.XXXXXX";

static struct json start(struct json j)
{
	struct err e = {0};

	unlink(path);
	if (out_open(path, false, &j.out, &e))
		printf("%s\n", e.why);
	return j;
}

/* Returns whether `want` was written. */
static bool wrote(struct json *j, const char *want)
{
	struct err e = {0};
	bool same;

	if (out_commit(j->out, &e))
		return false;
	FREED(memory_freed) char *text = read_file(path);
	same = text && !strcmp(text, want);
	if (!same)
		printf("want: %s\nhave: %s\n", want, text ? text : "");
	return same;
}

static void put_all(struct json *j)
{
	json_object(j, NULL);
	json_u64(j, "most", UINT64_MAX);
	json_i64(j, "least", INT64_MIN);
	json_array(j, "list");
	json_bool(j, NULL, true);
	json_null(j, NULL);
	json_array(j, NULL);
	json_end(j);
	json_object(j, NULL);
	json_end(j);
	json_end(j);
	json_printf(j, "share", "%.2f", 0.5);
	json_raw(j, "raw", "[1,2]", 5);
	json_end(j);
}

int main(void)
{
	struct json j;

	close(mkstemp(path));
	TEST("members and items have commas between them, in nested objects and arrays, too")
	{
		j = start((struct json){0});
		put_all(&j);
		CHECK(wrote(&j, "{\"most\": 18446744073709551615, \"least\": -9223372036854775808, "
				"\"list\": [true, null, [], {}], \"share\": 0.50, \"raw\": [1,2]}"));
	}
	TEST("tight JSON has no blanks")
	{
		j = start((struct json){.tight = true});
		put_all(&j);
		CHECK(wrote(&j, "{\"most\":18446744073709551615,\"least\":-9223372036854775808,"
				"\"list\":[true,null,[],{}],\"share\":0.50,\"raw\":[1,2]}"));
	}
	TEST("a line break stands before the next item or before the end")
	{
		j = start((struct json){0});
		json_object(&j, NULL);
		json_line(&j, 2);
		json_array(&j, "rows");
		json_line(&j, 4);
		json_u64(&j, NULL, 1);
		json_line(&j, 4);
		json_u64(&j, NULL, 2);
		json_end(&j);
		json_line(&j, 0);
		json_end(&j);
		CHECK(wrote(&j, "{\n  \"rows\": [\n    1,\n    2]\n}"));
	}
	TEST("names and strings are escaped, in one of two ways")
	{
		j = start((struct json){0});
		json_object(&j, NULL);
		json_key(&j, "a\"b", 3);
		json_string(&j, NULL, "\n\\");
		json_string(&j, "next", "\xff");
		json_end(&j);
		CHECK(wrote(&j, "{\"a\\\"b\": \"\\n\\\\\", \"next\": \"\\\\xff\"}"));
		j = start((struct json){.exact = true});
		json_object(&j, NULL);
		json_key(&j, "a\"b", 3);
		json_string(&j, NULL, "\n\\");
		json_string(&j, "next", "\xff");
		json_end(&j);
		CHECK(wrote(&j, "{\"a\\\"b\": \"\\n\\\\\", \"next\": \"\xef\xbf\xbd\"}"));
	}
	TEST("a long text is escaped in parts that split no character")
	{
		char text[3 * 1000 + 1], want[3 * 1000 + 3];
		size_t i;

		for (i = 0; i < 1000; i++)
			memcpy(text + 3 * i, "\xe2\x82\xac", 4);
		snprintf(want, sizeof(want), "\"%s\"", text);
		j = start((struct json){0});
		json_string(&j, NULL, text);
		CHECK(wrote(&j, want));
	}
	unlink(path);
	UNIT_MAIN_END;
}
