// SPDX-License-Identifier: Apache-2.0
/* Messages of a session to its user. */
#include <stdarg.h>
#include <stdio.h>

#include "session/priv.h"

#define TELL_BYTES 2048

__attribute__((format(printf, 3, 0))) static void tell(const struct session *ses, enum ses_level level,
						       const char *format, va_list args)
{
	char text[TELL_BYTES];

	if (!ses->ui.tell || (level == SES_DETAIL && !ses->o->verbose))
		return;
	vsnprintf(text, sizeof(text), format, args);
	ses->ui.tell(ses->ui.ctx, level, text);
}

#define TELL(function, level)                                                                                          \
	void function(const struct session *ses, const char *format, ...)                                              \
	{                                                                                                              \
		va_list args;                                                                                          \
                                                                                                                       \
		va_start(args, format);                                                                                \
		tell(ses, level, format, args);                                                                        \
		va_end(args);                                                                                          \
	}

TELL(ses_warn, SES_WARNING)
TELL(ses_stage, SES_STAGE)
TELL(ses_note, SES_NOTE)
TELL(ses_detail, SES_DETAIL)

int ses_refuse(struct session *ses, struct err *e)
{
	if (e->cls != ERR_TARGET)
		return e->code;
	ses_warn(ses, "%s; mxbpf goes on without it", e->why);
	ses_add_note(&ses->about, "refused", "%s", e->why);
	*e = (struct err){0};
	return 0;
}
