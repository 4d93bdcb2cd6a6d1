// SPDX-License-Identifier: Apache-2.0
/* From the schema of an operator to the registers and stack words in which its C++ function is given its arguments. */
#include <ctype.h>
#include <string.h>

#include "plan/priv.h"

#define TYPE_BYTES 64
#define FP_REGS	   8

/* Copies the type that begins at text without its annotations, "(a!)"; returns what follows. */
static const char *read_type(const char *text, char type[TYPE_BYTES])
{
	size_t n = 0;
	int depth = 0;

	for (; *text && (depth || !strchr(" ,)", *text)); text++) {
		depth += *text == '(';
		if (!depth && n < TYPE_BYTES - 1)
			type[n++] = *text;
		depth -= *text == ')';
	}
	type[n] = '\0';
	return text;
}

/* Behind the comma, or at the closing parenthesis, that ends an argument: defaults have commas of their own. */
static const char *skip_argument(const char *text)
{
	int depth = 0;
	char quote = 0;

	for (; *text; text++) {
		if (quote) {
			quote = *text == quote ? 0 : quote;
			continue;
		}
		if (*text == '\'' || *text == '"')
			quote = *text;
		if (!depth && (*text == ',' || *text == ')'))
			break;
		depth += *text == '(' || *text == '[';
		depth -= *text == ')' || *text == ']';
	}
	text += *text == ',';
	return text + strspn(text, " ");
}

static const struct adp_type *find_type(const struct adp *adp, const char *type)
{
	size_t n = strcspn(type, "[?"), len = strlen(type);
	const struct adp_type *t, *list = NULL;
	char suffix[TYPE_BYTES] = "";
	const char *p;
	size_t k = 0;

	for (p = type + n; *p && k < sizeof(suffix) - 1; p += isdigit((unsigned char)*p) ? strspn(p, "0123456789") : 1)
		suffix[k++] = isdigit((unsigned char)*p) ? 'N' : *p;
	for (t = adp->args.types; t->base && len; t++) {
		if (strlen(t->base) != n || strncmp(t->base, type, n))
			continue;
		if (!strcmp(t->suffix, suffix))
			return t;
		if (suffix[0] == '[' && suffix[1] == 'N' && t->suffix[0] == '[' && !strcmp(t->suffix + 1, suffix + 2))
			list = t;
	}
	return list;
}

/*
 * Whether the result is written where a hidden first argument says: C++ objects are, std::tuple of anything among them;
 * references and plain values are not.
 */
static bool returns_in_memory(const char *text)
{
	char type[TYPE_BYTES];

	if (*text == '(')
		return text[1] != ')';
	if (!strncmp(text, "Tensor(", 7) && strchr(text, '!'))
		return false;
	read_type(text, type);
	return !strncmp(type, "Tensor", 6) || !strcmp(type, "Scalar") || !strcmp(type, "SymInt") ||
	       !strcmp(type, "SymBool");
}

struct places {
	unsigned gp, fp, stack; /* taken so far */
};

/* Where the argument begins. */
static struct mxbpf_arg place(struct places *at, const struct adp_type *t)
{
	struct mxbpf_arg arg = {.kind = t->kind, .opt = t->opt, .opt_off = t->opt_off};

	if (!t->stack && at->gp + t->gp <= MXBPF_ARG_REGS && at->fp + t->fp <= FP_REGS) {
		arg.slot = (uint8_t)at->gp;
		arg.opt_off -= t->opt ? 8 * t->fp : 0;
		at->gp += t->gp;
		at->fp += t->fp;
	} else {
		arg.slot = (uint8_t)(MXBPF_ARG_REGS + at->stack);
		at->stack += t->stack + t->gp + t->fp;
	}
	return arg;
}

struct mxbpf_func_args plan_args(const struct adp *adp, const struct plan_func *f)
{
	const struct mxbpf_func_args unknown = {0};
	const char *text = f->schema ? strchr(f->schema, '(') : NULL;
	const char *result = f->schema ? strstr(f->schema, ") -> ") : NULL;
	struct mxbpf_func_args args = {0};
	struct places at = {0};
	char type[TYPE_BYTES];

	if (!text || !result)
		return unknown;
	at.gp = returns_in_memory(result + strlen(") -> "));
	for (text++; *text && *text != ')'; text = skip_argument(text)) {
		const struct adp_type *t;
		struct adp_type as;

		if (*text == '*') /* what follows is named by keyword */
			continue;
		text = read_type(text, type);
		t = find_type(adp, type);
		if (!t || args.n == MXBPF_ARGS_MAX)
			return unknown;
		as = *t;
		if (t->kind == MXBPF_ARG_TENSORS && strstr(f->symbol, "8IListRef")) {
			as.kind = MXBPF_ARG_TENSORS_REF;
			as.gp = 1;
		}
		args.args[args.n++] = place(&at, &as);
	}
	if (at.stack > MXBPF_ARG_SLOTS - MXBPF_ARG_REGS)
		return unknown;
	args.nslots = (uint8_t)(MXBPF_ARG_REGS + at.stack);
	return args;
}
