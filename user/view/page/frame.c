// SPDX-License-Identifier: Apache-2.0
#include "view/page/frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/fmt.h"
#include "view/page/page.h"

#define NONCE_BYTES 16

void page_markup(struct out *out, const char *markup)
{
	out_filter(out, OUT_AS_IS);
	out_puts(out, markup);
	out_filter(out, OUT_HTML);
}

void page_text_of(struct out *out, const char *text, size_t len)
{
	out_escaped(out, fmt_utf8, text ? text : "", text ? len : 0);
}

static int draw_nonce(char nonce[2 * NONCE_BYTES + 1], struct err *e)
{
	uint8_t bytes[NONCE_BYTES];
	unsigned i;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_set(e, ERR_RUNTIME, -EIO, "cannot draw a random number for the page");
	for (i = 0; i < NONCE_BYTES; i++)
		snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int page_begin(struct out *out, const char *title, size_t len, struct err *e)
{
	char text[400], nonce[2 * NONCE_BYTES + 1];

	if (draw_nonce(nonce, e))
		return e->code;
	page_markup(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
			 "<meta name=\"generator\" content=\"mxbpf\">\n");
	snprintf(text, sizeof(text),
		 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-%s'; "
		 "style-src 'nonce-%s'; style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n",
		 nonce, nonce);
	page_markup(out, text);
	page_markup(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>mxbpf: ");
	page_text_of(out, title, len);
	snprintf(text, sizeof(text), "</title>\n<style nonce=\"%s\">\n", nonce);
	page_markup(out, text);
	page_markup(out, page_style);
	snprintf(text, sizeof(text), "</style>\n<script nonce=\"%s\">\n", nonce);
	page_markup(out, text);
	page_markup(out, page_script);
	page_markup(out, "</script>\n</head><body>\n");
	return 0;
}

void page_end(struct out *out)
{
	out_filter(out, OUT_AS_IS);
}

void page_data_begin(struct out *out, const char *class)
{
	page_markup(out, "<script type=\"application/json\" class=\"");
	page_markup(out, class);
	page_markup(out, "\">");
	out_filter(out, OUT_SCRIPT);
}

void page_data_end(struct out *out)
{
	page_markup(out, "</script>\n");
}
