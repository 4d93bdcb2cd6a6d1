// SPDX-License-Identifier: Apache-2.0
/* Computes from the schema of an operator which registers and stack words carry the arguments of its C++ function. */
#include <ctype.h>
#include <string.h>

#include "plan/priv.h"

#define TYPE_BYTES 64
#define FP_REGS	   8

/* Copies the type at text without annotations such as "(a!)". Returns the text after it. */
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

/*
 * Returns the text after an argument: after its comma, or at the closing parenthesis. Default values may contain
 * commas.
 */
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
 * Returns true if a hidden first argument is the address of the result. That holds for C++ objects, std::tuple among
 * them, but not for references and plain values.
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
	unsigned gp, fp, stack; /* used so far */
};

/* Returns where an argument begins. */
static struct mxbpf_arg args_place(struct places *at, const struct adp_type *t)
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

		if (*text == '*') /* the following arguments are keyword-only */
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
		args.args[args.n++] = args_place(&at, &as);
	}
	if (at.stack > MXBPF_ARG_SLOTS - MXBPF_ARG_REGS)
		return unknown;
	args.nslots = (uint8_t)(MXBPF_ARG_REGS + at.stack);
	return args;
}
