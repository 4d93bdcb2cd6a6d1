/* SPDX-License-Identifier: Apache-2.0 */
/* Setters that only opts.c uses; option.h says what a setter does, and has those that features use as well. */
#ifndef CMD_SETTERS_H
#define CMD_SETTERS_H

#include "cmd/opts.h"

int cmd_clear_flag(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_duration(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_bytes(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_ring(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_path(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_file(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_word(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_index(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_follow(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_sort(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_by(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_patterns(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_detail(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_help(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);
int cmd_set_version(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e);

#endif
