// SPDX-License-Identifier: Apache-2.0
/* JSON-RPC and the methods of the protocol, in both forms: with `initialize`, and with a revision in each request. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "mcp/priv.h"

#define PREFIX "io.modelcontextprotocol/"

#define NOT_JSON	    (-32700)
#define INVALID_REQUEST	    (-32600)
#define NO_METHOD	    (-32601)
#define INVALID_PARAMS	    (-32602)
#define INTERNAL	    (-32603)
#define UNSUPPORTED_VERSION (-32022)

static const char *const handshakes[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL};

static const char instructions[] =
	"mxbpf says why a running MXNet or PyTorch job is slow or hangs. Start with jobs, then look; follow the lines "
	"that "
	"begin with next: they are calls of these tools. For a job that does not progress call hang.";

static const cJSON *member(const cJSON *of, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(of, name);
}

/* Writes a message as one line; the message is deleted. Nobody reads after EPIPE, and stdin ends, too. */
static void send_message(cJSON *message)
{
	char *text = cJSON_PrintUnformatted(message);
	size_t len = text ? strlen(text) : 0, at = 0;
	ssize_t n;

	cJSON_Delete(message);
	if (!text)
		return;
	text[len++] = '\n'; /* in place of the NUL */
	while (at < len) {
		n = write(STDOUT_FILENO, text + at, len - at);
		if (n < 0 && errno != EINTR)
			break;
		at += n > 0 ? (size_t)n : 0;
	}
	cJSON_free(text);
}

static cJSON *new_message(const cJSON *id)
{
	cJSON *message = cJSON_CreateObject();

	cJSON_AddStringToObject(message, "jsonrpc", "2.0");
	cJSON_AddItemToObject(message, "id", id ? cJSON_Duplicate(id, true) : cJSON_CreateNull());
	return message;
}

void mcp_error(const cJSON *id, int code, const char *why, cJSON *data)
{
	cJSON *message = new_message(id), *error = cJSON_AddObjectToObject(message, "error");

	cJSON_AddNumberToObject(error, "code", code);
	cJSON_AddStringToObject(error, "message", why);
	if (data)
		cJSON_AddItemToObject(error, "data", data);
	send_message(message);
}

static void add_server(cJSON *to, const char *name)
{
	cJSON *info = cJSON_AddObjectToObject(to, name);

	cJSON_AddStringToObject(info, "name", "mxbpf");
	cJSON_AddStringToObject(info, "version", MXBPF_VERSION);
}

/* Takes the result. */
static void send_result(const cJSON *id, cJSON *result, bool modern)
{
	cJSON *message = new_message(id);

	if (modern) {
		cJSON_AddStringToObject(result, "resultType", "complete");
		add_server(cJSON_AddObjectToObject(result, "_meta"), PREFIX "serverInfo");
	}
	cJSON_AddItemToObject(message, "result", result);
	send_message(message);
}

static cJSON *versions(void)
{
	cJSON *all = cJSON_CreateArray();
	unsigned i;

	cJSON_AddItemToArray(all, cJSON_CreateString(MCP_MODERN));
	for (i = 0; handshakes[i]; i++)
		cJSON_AddItemToArray(all, cJSON_CreateString(handshakes[i]));
	return all;
}

/* What the tools are does not change while the server runs, and depends on nobody. */
static void add_cache(cJSON *result)
{
	cJSON_AddNumberToObject(result, "ttlMs", 3600000);
	cJSON_AddStringToObject(result, "cacheScope", "public");
}

static cJSON *describe(cJSON *result)
{
	cJSON_AddObjectToObject(cJSON_AddObjectToObject(result, "capabilities"), "tools");
	cJSON_AddStringToObject(result, "instructions", instructions);
	return result;
}

static void do_initialize(struct mcp *m, const cJSON *id, const cJSON *params, bool modern)
{
	const char *asked = cJSON_GetStringValue(member(params, "protocolVersion"));
	cJSON *result;
	unsigned i;

	if (!asked) {
		mcp_error(id, INVALID_PARAMS, "protocolVersion is missing", NULL);
		return;
	}
	for (i = 0; handshakes[i] && strcmp(handshakes[i], asked); i++)
		;
	m->greeted = true;
	result = cJSON_CreateObject();
	cJSON_AddStringToObject(result, "protocolVersion", handshakes[i] ? asked : handshakes[0]);
	add_server(result, "serverInfo");
	send_result(id, describe(result), false);
}

static void do_discover(struct mcp *m, const cJSON *id, const cJSON *params, bool modern)
{
	cJSON *result = describe(cJSON_CreateObject());

	cJSON_AddItemToObject(result, "supportedVersions", versions());
	add_cache(result);
	send_result(id, result, true);
}

static void do_ping(struct mcp *m, const cJSON *id, const cJSON *params, bool modern)
{
	send_result(id, cJSON_CreateObject(), modern);
}

static void do_list(struct mcp *m, const cJSON *id, const cJSON *params, bool modern)
{
	cJSON *result = cJSON_CreateObject(), *tools = cJSON_AddArrayToObject(result, "tools"), *tool, *notes;
	const struct mcp_tool *t;

	if (member(params, "cursor")) {
		cJSON_Delete(result);
		mcp_error(id, INVALID_PARAMS, "the list has one page, so there is no such cursor", NULL);
		return;
	}
	for (t = mcp_tools; t->name; t++) {
		tool = cJSON_CreateObject();
		cJSON_AddStringToObject(tool, "name", t->name);
		cJSON_AddStringToObject(tool, "description", t->help);
		cJSON_AddItemToObject(tool, "inputSchema", mcp_schema(m, t));
		notes = cJSON_AddObjectToObject(tool, "annotations");
		cJSON_AddBoolToObject(notes, "readOnlyHint", t->reads_only || !m->o->allow_agent);
		cJSON_AddBoolToObject(notes, "openWorldHint", false);
		cJSON_AddItemToArray(tools, tool);
	}
	if (modern)
		add_cache(result);
	send_result(id, result, modern);
}

/* The answer of a tool that could not do what it should is a result, too, so that the assistant reads why. */
static void send_answer(struct mcp *m, struct mcp_call *c, struct buf *text, bool failed)
{
	cJSON *result = cJSON_CreateObject(), *content = cJSON_AddArrayToObject(result, "content");
	cJSON *part = cJSON_CreateObject();
	struct buf page = {0};

	mcp_put_page(m, &page, text, 0, 0);
	buf_put(&page, "", 1);
	cJSON_AddStringToObject(part, "type", "text");
	cJSON_AddStringToObject(part, "text", page.data ? page.data : "");
	cJSON_AddItemToArray(content, part);
	cJSON_AddBoolToObject(result, "isError", failed);
	send_result(c->id, result, c->modern);
	buf_fini(&page);
	mcp_call_free(c);
}

/* Texts of mxbpf come from jobs, so bytes that are no UTF-8 are possible; they would make the message invalid. */
static void make_utf8(struct buf *b)
{
	size_t i, n;

	for (i = 0; i < b->len; i += n) {
		for (n = 1; n <= 4 && i + n <= b->len && !fmt_is_utf8(b->data + i, n); n++)
			;
		if (b->data[i] && n <= 4 && i + n <= b->len)
			continue;
		b->data[i] = '?';
		n = 1;
	}
}

static void finish_with(struct mcp *m, struct mcp_call *c, struct buf *text, const struct err *e)
{
	struct buf why = {0};

	if (c->cancelled) {
		mcp_call_free(c);
	} else if (e->code) {
		buf_printf(&why, "%s\n", e->why);
		make_utf8(&why);
		send_answer(m, c, &why, true);
	} else {
		make_utf8(text);
		send_answer(m, c, text, false);
	}
	buf_fini(&why);
	buf_fini(text);
}

void mcp_finish(struct mcp *m, struct mcp_call *c)
{
	struct buf text = {0};
	struct err e = {0};

	if (!c->cancelled && !c->tool->answer(m, c, &text, &e) && c->pid) {
		buf_fini(&text); /* another child works on it */
		return;
	}
	finish_with(m, c, &text, &e);
}

static struct mcp_call *free_place(struct mcp *m)
{
	unsigned i;

	for (i = 0; i < MCP_CALLS; i++)
		if (!m->calls[i].tool)
			return &m->calls[i];
	return NULL;
}

static void do_call(struct mcp *m, const cJSON *id, const cJSON *params, bool modern)
{
	const char *name = cJSON_GetStringValue(member(params, "name"));
	const cJSON *args = member(params, "arguments"), *token = member(member(params, "_meta"), "progressToken");
	struct mcp_call *c = free_place(m);
	const struct mcp_tool *t;
	struct buf text = {0};
	struct err e = {0};

	for (t = mcp_tools; name && t->name && strcmp(t->name, name); t++)
		;
	if (!name || !t->name) {
		mcp_error(id, INVALID_PARAMS, name ? "no tool has this name" : "the name of the tool is missing", NULL);
		return;
	}
	if (args && !cJSON_IsObject(args)) {
		mcp_error(id, INVALID_PARAMS, "arguments is not an object", NULL);
		return;
	}
	if (!c) {
		mcp_error(id, INTERNAL, "8 calls are running; wait for one of them, or cancel it", NULL);
		return;
	}
	c->tool = t;
	c->id = cJSON_Duplicate(id, true);
	c->args = args ? cJSON_Duplicate(args, true) : cJSON_CreateObject();
	c->words = cJSON_CreateArray();
	c->token = cJSON_IsString(token) || cJSON_IsNumber(token) ? cJSON_Duplicate(token, true) : NULL;
	c->modern = modern;
	c->started = mcp_now();
	mcp_word(c, "%s", program_invocation_name);
	if (mcp_check_args(m, t, c->args, &e) || (t->command && t->command(m, c, &e)))
		finish_with(m, c, &text, &e);
	else if (c->argc == 1)
		mcp_finish(m, c);
	else if (mcp_spawn(m, c, &e))
		finish_with(m, c, &text, &e);
}

void mcp_say_progress(struct mcp_call *c, uint64_t now_ns)
{
	cJSON *message, *params;

	c->beats++;
	if (!c->token)
		return;
	message = cJSON_CreateObject();
	cJSON_AddStringToObject(message, "jsonrpc", "2.0");
	cJSON_AddStringToObject(message, "method", "notifications/progress");
	params = cJSON_AddObjectToObject(message, "params");
	cJSON_AddItemToObject(params, "progressToken", cJSON_Duplicate(c->token, true));
	cJSON_AddNumberToObject(params, "progress", c->beats);
	send_message(message);
}

static void cancel(struct mcp *m, const cJSON *params)
{
	const cJSON *id = member(params, "requestId");
	struct mcp_call *c;

	for (c = m->calls; id && c < m->calls + MCP_CALLS; c++)
		if (c->tool && !c->cancelled && cJSON_Compare(c->id, id, true)) {
			c->cancelled = true;
			if (c->pid > 0)
				kill(c->pid, SIGINT);
		}
}

static const struct {
	const char *name;
	void (*run)(struct mcp *m, const cJSON *id, const cJSON *params, bool modern);
	bool first; /* it is possible before `initialize`, without a revision */
} methods[] = {
	{"initialize", do_initialize, true}, {"ping", do_ping, true},	     {"server/discover", do_discover, false},
	{"tools/list", do_list, false},	     {"tools/call", do_call, false},
};

/* Whether the request says a revision that the server knows, or needs none. Answers it if not. */
static bool check_version(struct mcp *m, const cJSON *id, const cJSON *params, bool first, bool *modern)
{
	const cJSON *meta = member(params, "_meta"), *said = member(meta, PREFIX "protocolVersion");
	const char *version = cJSON_GetStringValue(said);
	cJSON *data;

	*modern = said;
	if (!said) {
		if (first || m->greeted)
			return true;
		mcp_error(id, INVALID_PARAMS, "_meta has no " PREFIX "protocolVersion, and no initialize came before",
			  NULL);
		return false;
	}
	if (!version || !cJSON_IsObject(member(meta, PREFIX "clientCapabilities"))) {
		mcp_error(id, INVALID_PARAMS, "_meta needs " PREFIX "protocolVersion and " PREFIX "clientCapabilities",
			  NULL);
		return false;
	}
	if (!strcmp(version, MCP_MODERN))
		return true;
	data = cJSON_CreateObject();
	cJSON_AddItemToObject(data, "supported", versions());
	cJSON_AddStringToObject(data, "requested", version);
	mcp_error(id, UNSUPPORTED_VERSION, "Unsupported protocol version", data);
	return false;
}

static void take_request(struct mcp *m, const cJSON *message)
{
	const cJSON *id = member(message, "id"), *params = member(message, "params");
	const char *method = cJSON_GetStringValue(member(message, "method"));
	const char *jsonrpc = cJSON_GetStringValue(member(message, "jsonrpc"));
	unsigned i, n = sizeof(methods) / sizeof(methods[0]);
	bool modern;

	if (!jsonrpc || strcmp(jsonrpc, "2.0") || !method || (id && !cJSON_IsString(id) && !cJSON_IsNumber(id))) {
		if (method || !(member(message, "result") || member(message, "error"))) /* the server asks nothing */
			mcp_error(cJSON_IsString(id) || cJSON_IsNumber(id) ? id : NULL, INVALID_REQUEST,
				  "this is no request of JSON-RPC 2.0", NULL);
		return;
	}
	if (!id) {
		if (!strcmp(method, "notifications/cancelled"))
			cancel(m, params);
		return;
	}
	for (i = 0; i < n && strcmp(methods[i].name, method); i++)
		;
	if (i == n)
		mcp_error(id, NO_METHOD, "Method not found", NULL);
	else if (params && !cJSON_IsObject(params))
		mcp_error(id, INVALID_PARAMS, "params is not an object", NULL);
	else if (check_version(m, id, params, methods[i].first, &modern))
		methods[i].run(m, id, params, modern);
}

void mcp_take_line(struct mcp *m, const char *line, size_t len)
{
	const char *end = NULL;
	cJSON *message;

	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	if (!len)
		return;
	message = fmt_is_utf8(line, len) ? cJSON_ParseWithLengthOpts(line, len, &end, false) : NULL;
	if (!message || end != line + len)
		mcp_error(NULL, NOT_JSON, "this line is no JSON", NULL);
	else if (!cJSON_IsObject(message))
		mcp_error(NULL, INVALID_REQUEST, "this is no request; batches are not supported", NULL);
	else
		take_request(m, message);
	cJSON_Delete(message);
}
