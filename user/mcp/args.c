// SPDX-License-Identifier: Apache-2.0
/* Arguments of tools: their schema, their checks, and the words of the command line that are made of them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/priv.h"

#define TEXT_BYTES 4096
#define SECONDS	   300
#define OPTIONS	   16

/* In the order of enum mcp_kind. */
static const struct {
	const char *type;
	int min, max; /* of a number */
} kinds[] = {
	[MCP_PID] = {"integer", 1, 4194304},	 [MCP_SECONDS] = {"integer", 1, SECONDS},
	[MCP_COUNT] = {"integer", 0, 100000000}, [MCP_TEXT] = {"string", 0, 0},
	[MCP_SOURCE] = {"string", 0, 0},	 [MCP_FLAG] = {"boolean", 0, 0},
	[MCP_OPTIONS] = {"array", 0, 0},
};

/* Options of mxbpf that `look` takes. None of them names a file, and none but the last two changes the job. */
static const struct {
	const char *name;
	const char *of; /* the characters of its value; NULL: it has none */
	bool enters;	/* it loads a library into the job */
} options[] = {
#define WORDS  "abcdefghijklmnopqrstuvwxyz-"
#define NUMBER "0123456789"
	{"--sched", NULL, false},
	{"--memory", NULL, false},
	{"--py-stacks", NULL, false},
	{"--shapes", NULL, false},
	{"--omp", NULL, false},
	{"--life", NULL, false},
	{"--job", NULL, false},
	{"--sample", NUMBER, false},
	{"--by", WORDS, false},
	{"--sort", WORDS, false},
	{"--iterations", NUMBER "/", false},
	{"--ring-size", NUMBER "KMG", false},
	{"--probes", WORDS ",", false},
	{"--agent", NULL, true},
	{"--gpu", NULL, true},
};
#define NOPTIONS (sizeof(options) / sizeof(options[0]))

/* Finds "--name" or "--name=value". Returns the row, or NULL if it is none, or its value is not of its kind. */
static const bool *find_option(const char *text)
{
	const char *equals = strchr(text, '=');
	const size_t len = equals ? (size_t)(equals - text) : strlen(text);
	unsigned i;

	for (i = 0; i < NOPTIONS; i++) {
		if (strlen(options[i].name) != len || strncmp(options[i].name, text, len))
			continue;
		if (!equals != !options[i].of)
			return NULL;
		return equals && (!equals[1] || equals[1 + strspn(equals + 1, options[i].of)]) ? NULL
											       : &options[i].enters;
	}
	return NULL;
}

cJSON *mcp_schema(const struct mcp *m, const struct mcp_tool *t)
{
	cJSON *schema = cJSON_CreateObject(), *properties, *required, *of;
	const struct mcp_param *p;

	cJSON_AddStringToObject(schema, "type", "object");
	properties = cJSON_AddObjectToObject(schema, "properties");
	required = cJSON_CreateArray();
	for (p = t->params; p->name; p++) {
		of = cJSON_AddObjectToObject(properties, p->name);
		cJSON_AddStringToObject(of, "type", kinds[p->kind].type);
		if (kinds[p->kind].max) {
			cJSON_AddNumberToObject(of, "minimum", kinds[p->kind].min);
			cJSON_AddNumberToObject(of, "maximum", kinds[p->kind].max);
		}
		if (p->kind == MCP_OPTIONS)
			cJSON_AddStringToObject(cJSON_AddObjectToObject(of, "items"), "type", "string");
		if (p->help)
			cJSON_AddStringToObject(of, "description", p->help);
		if (p->required)
			cJSON_AddItemToArray(required, cJSON_CreateString(p->name));
	}
	cJSON_AddItemToObject(schema, "required", required);
	cJSON_AddBoolToObject(schema, "additionalProperties", false);
	return schema;
}

static bool is_text(const cJSON *v)
{
	return cJSON_IsString(v) && v->valuestring[0] && strlen(v->valuestring) < TEXT_BYTES;
}

static bool fits(enum mcp_kind kind, const cJSON *v)
{
	const cJSON *item;

	switch (kind) {
	case MCP_FLAG:
		return cJSON_IsBool(v);
	case MCP_TEXT:
	case MCP_SOURCE:
		return is_text(v);
	case MCP_OPTIONS:
		if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) > OPTIONS)
			return false;
		cJSON_ArrayForEach(item, v)
		{
			if (!is_text(item))
				return false;
		}
		return true;
	default:
		return cJSON_IsNumber(v) && v->valuedouble == v->valueint && v->valueint >= kinds[kind].min &&
		       v->valueint <= kinds[kind].max;
	}
}

int mcp_check_args(const struct mcp *m, const struct mcp_tool *t, const cJSON *args, struct err *e)
{
	const struct mcp_param *p;
	const cJSON *v;

	cJSON_ArrayForEach(v, args)
	{
		for (p = t->params; p->name && strcmp(p->name, v->string); p++)
			;
		if (!p->name)
			return err_set(e, ERR_USAGE, -EINVAL, "%s has no argument '%.60s'", t->name, v->string);
		if (fits(p->kind, v))
			continue;
		if (kinds[p->kind].max)
			return err_set(e, ERR_USAGE, -EINVAL, "%s: %s must be an integer from %d to %d", t->name,
				       p->name, kinds[p->kind].min, kinds[p->kind].max);
		return err_set(e, ERR_USAGE, -EINVAL, "%s: %s must be %s %s that is not empty", t->name, p->name,
			       kinds[p->kind].type[0] == 'a' ? "an" : "a", kinds[p->kind].type);
	}
	for (p = t->params; p->name; p++)
		if (p->required && !cJSON_GetObjectItemCaseSensitive(args, p->name))
			return err_set(e, ERR_USAGE, -EINVAL, "%s needs the argument %s", t->name, p->name);
	return 0;
}

const char *mcp_text(const struct mcp_call *c, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c->args, name));
}

unsigned mcp_number(const struct mcp_call *c, const char *name, unsigned otherwise)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(c->args, name);

	return v ? (unsigned)v->valueint : otherwise;
}

bool mcp_flag(const struct mcp_call *c, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c->args, name));
}

void mcp_word(struct mcp_call *c, const char *fmt, ...)
{
	char text[TEXT_BYTES + 256];
	cJSON *word;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	word = cJSON_CreateString(text);
	if (!word || c->argc >= MCP_ARGS)
		return;
	cJSON_AddItemToArray(c->words, word);
	c->argv[c->argc++] = word->valuestring;
}

static int refuse_option(const char *text, struct err *e)
{
	char all[400] = "";
	size_t n = 0;
	unsigned i;

	for (i = 0; i < NOPTIONS && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, " %s%s", options[i].name,
				      options[i].of ? "=VALUE" : "");
	return err_set(e, ERR_USAGE, -EINVAL, "look does not take the option '%.60s'. It takes%s", text, all);
}

int mcp_add_options(const struct mcp *m, struct mcp_call *c, struct err *e)
{
	const cJSON *item;
	const bool *enters;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(c->args, "options"))
	{
		enters = find_option(item->valuestring);
		if (!enters)
			return refuse_option(item->valuestring, e);
		if (*enters && !m->o->allow_agent)
			return err_set(
				e, ERR_PRIVILEGE, -EPERM,
				"%.60s loads a library into the job. The user allows it with mxbpf mcp --allow-agent; "
				"ask first",
				item->valuestring);
		mcp_word(c, "%s", item->valuestring);
	}
	return 0;
}

/* Takes the next word of a hint. Returns false behind the last one. */
static bool next_word(const char **at, char word[64])
{
	size_t len;

	*at += strspn(*at, " ");
	len = strcspn(*at, " ");
	snprintf(word, 64, "%.*s", (int)(len < 63 ? len : 63), *at);
	*at += len;
	return len;
}

void mcp_put_next(const struct mcp *m, struct buf *to, const char *next, int pid)
{
	const bool now = !strncmp(next, "now ", 4);
	char word[64], value[64], option[130];
	const char *at = now ? next + 4 : next, *peek;
	const bool *enters;
	unsigned n = 0;

	buf_printf(to, "   next: %s {\"pid\":", now ? "hang" : "look");
	while (next_word(&at, word)) {
		peek = at;
		snprintf(option, sizeof(option), "%s", word);
		if (next_word(&peek, value) && value[0] != '-') {
			at = peek;
			snprintf(option, sizeof(option), "%s=%s", word, value);
		}
		if (!strcmp(word, "--pid")) {
			buf_printf(to, "%d", value[0] >= '1' && value[0] <= '9' ? atoi(value) : pid);
			continue;
		}
		enters = find_option(option);
		if (now && !strcmp(option, "--job"))
			buf_printf(to, ",\"job\":true");
		else if (!now && enters && (!*enters || m->o->allow_agent))
			buf_printf(to, "%s\"%s\"", n++ ? "," : ",\"options\":[", option);
	}
	buf_printf(to, "%s}\n", n ? "]" : "");
	if (!m->o->allow_agent && (strstr(next, "--gpu") || strstr(next, "--agent")))
		buf_printf(to, "   the user may run more: sudo mxbpf %s (pid %d), which loads a library into the job\n",
			   next, pid);
}
