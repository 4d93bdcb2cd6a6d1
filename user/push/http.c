// SPDX-License-Identifier: Apache-2.0
#include "push/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACE_BYTES 512
#define READ_MAX    (64u << 10) /* of an answer */
#define TIMEOUT_NS  10000000000ull
#define NS_PER_MS   1000000
#define POLL_MS	    1000

/* ---- libcurl, which stays loaded */

#define FUNCTIONS(x)                                                                                                   \
	x(global_init) x(easy_init) x(easy_setopt) x(easy_getinfo) x(easy_strerror) x(easy_cleanup) x(multi_init)      \
		x(multi_add_handle) x(multi_remove_handle) x(multi_perform) x(multi_poll) x(multi_wakeup)              \
			x(multi_info_read) x(multi_cleanup) x(slist_append) x(slist_free_all) x(url) x(url_set)        \
				x(url_get) x(url_cleanup) x(free)

#define MEMBER(name) __typeof__(curl_##name) *name;
static struct {
	FUNCTIONS(MEMBER)
} curl;

/* The second name is that of Debian's package with GnuTLS. */
static void *load_library(struct err *e)
{
	void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	const char *why = library ? NULL : dlerror();

	if (!library)
		library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		err_set(e, ERR_RUNTIME, -ENOENT, "nothing can be sent without libcurl: %s",
			why ? why : "this is the static mxbpf, which loads no library; use the other one");
	return library;
}

/* Called from one thread at a time. */
static int http_load(struct err *e)
{
	static void *library;

	if (library)
		return 0;
	library = load_library(e);
	if (!library)
		return e->code;
#define FIND(name) (curl.name = (__typeof__(curl.name))(uintptr_t)dlsym(library, "curl_" #name)) &&
	if (FUNCTIONS(FIND) !curl.global_init(CURL_GLOBAL_DEFAULT))
		return 0;
	library = NULL;
	return err_set(e, ERR_RUNTIME, -ENOSYS, "nothing can be sent: libcurl is older than 7.68");
}

/* ---- */

struct http {
	CURL *easy;
	CURLM *multi;
	char *url; /* owned */
	char place[PLACE_BYTES];
	struct curl_slist *headers;
	struct http_answer *answer; /* of the request under way */
	size_t read;		    /* bytes of it */
	atomic_bool stopped;
};

static void take_part(CURLU *u, CURLUPart part, const char *before, char place[PLACE_BYTES])
{
	const size_t len = strlen(place);
	char *text = NULL;

	if (!curl.url_get(u, part, &text, 0))
		snprintf(place + len, PLACE_BYTES - len, "%s%s", before, text);
	curl.free(text);
}

/* Checks a URL with libcurl's own parser, so that what is shown is what is used. */
static int check_url(const struct push_opts *o, char place[PLACE_BYTES], struct err *e)
{
	CURLU *u = curl.url();
	char *scheme = NULL;

	if (!u)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (curl.url_set(u, CURLUPART_URL, o->url, 0) || curl.url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    (strcmp(scheme, "http") && strcmp(scheme, "https")))
		err_set(e, ERR_USAGE, -EINVAL,
			"%s cannot be sent: the URL is not one that begins with http:// or https://", o->what);
	curl.free(scheme);
	place[0] = '\0';
	if (!e->code) {
		take_part(u, CURLUPART_SCHEME, "", place);
		take_part(u, CURLUPART_HOST, "://", place);
		take_part(u, CURLUPART_PORT, ":", place);
		take_part(u, CURLUPART_PATH, "", place);
	}
	curl.url_cleanup(u);
	return e->code;
}

/* More than READ_MAX ends the transfer. */
static size_t on_answer(char *data, size_t one, size_t n, void *ctx)
{
	struct http *h = ctx;
	struct http_answer *a = h->answer;
	const size_t room = sizeof(a->body) - a->len, kept = n < room ? n : room;

	memcpy(a->body + a->len, data, kept);
	a->len += kept;
	h->read += n;
	return h->read > READ_MAX ? 0 : n;
}

/* Processes that mxbpf starts do not get the connection. */
static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static bool set_options(struct http *h, const struct push_opts *o)
{
	const uint64_t ms = (o->timeout_ns ? o->timeout_ns : TIMEOUT_NS) / NS_PER_MS;
	CURL *c = h->easy;
	bool ok = true;

	ok &= !curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1l);
	ok &= !curl.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0l);
	ok &= !curl.easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	ok &= !curl.easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	ok &= !curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(ms ? ms : 1));
	ok &= !curl.easy_setopt(c, CURLOPT_USERAGENT, "mxbpf/" MXBPF_VERSION);
	ok &= !curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_answer);
	ok &= !curl.easy_setopt(c, CURLOPT_WRITEDATA, (void *)h);
	ok &= !curl.easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_socket);
	ok &= !o->ca_file || !curl.easy_setopt(c, CURLOPT_CAINFO, o->ca_file);
#if LIBCURL_VERSION_NUM >= 0x075700 /* an older library refuses these two, and does well without */
	curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.easy_setopt(c, CURLOPT_QUICK_EXIT, 1l); /* the end waits for no name server */
#endif
	return ok;
}

static bool add_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *more = curl.slist_append(*list, header);

	*list = more ? more : *list;
	return more;
}

int http_open(struct http **out, const struct push_opts *o, struct err *e)
{
	struct http *h = calloc(1, sizeof(*h));
	bool ok;
	size_t i;

	if (!h)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (http_load(e) || check_url(o, h->place, e)) {
		free(h);
		return e->code;
	}
	h->easy = curl.easy_init();
	h->multi = curl.multi_init();
	h->url = strdup(o->url);
	ok = h->easy && h->multi && h->url && set_options(h, o) && add_header(&h->headers, "Expect:");
	for (i = 0; ok && o->headers && o->headers[i]; i++)
		ok = add_header(&h->headers, o->headers[i]);
	*out = h;
	if (ok)
		return 0;
	http_close(h);
	return err_set(e, ERR_RUNTIME, -ENOMEM, "%s cannot be sent: libcurl has no memory, or lacks TLS", o->what);
}

const char *http_place(const struct http *h)
{
	return h->place;
}

/* Runs the transfer to its end. */
static int http_run(struct http *h, struct err *e)
{
	CURLMcode err = CURLM_OK;
	int running = 1, left;
	CURLcode result = CURLE_OK;
	CURLMsg *m;

	while (running && !err && !atomic_load(&h->stopped)) {
		err = curl.multi_perform(h->multi, &running);
		if (running && !err)
			err = curl.multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
	}
	while ((m = curl.multi_info_read(h->multi, &left)))
		result = m->msg == CURLMSG_DONE ? m->data.result : result;
	if (running && atomic_load(&h->stopped))
		return err_set(e, ERR_RUNTIME, -ECANCELED, "mxbpf ends");
	if (err)
		return err_set(e, ERR_RUNTIME, -EIO, "libcurl failed (%d)", (int)err);
	if (result && !(result == CURLE_WRITE_ERROR && h->read > READ_MAX)) /* else the status counts */
		return err_set(e, ERR_RUNTIME, -EIO, "%s", curl.easy_strerror(result));
	return 0;
}

static char *whole_url(const struct http *h, const char *query)
{
	char *url = NULL;

	if (!query)
		return strdup(h->url);
	return asprintf(&url, "%s%c%s", h->url, strchr(h->url, '?') ? '&' : '?', query) < 0 ? NULL : url;
}

int http_post(struct http *h, const struct push_request *q, struct http_answer *a, struct err *e)
{
	char *url = whole_url(h, q->query), type[128];
	struct curl_slist *headers = NULL, *from;
	long status = 0;
	bool ok = url;

	a->len = a->status = 0;
	h->answer = a;
	h->read = 0;
	snprintf(type, sizeof(type), "Content-Type: %s", q->type);
	ok = ok && add_header(&headers, type);
	for (from = h->headers; ok && from; from = from->next)
		ok = add_header(&headers, from->data);
	ok = ok && !curl.easy_setopt(h->easy, CURLOPT_URL, url) &&
	     !curl.easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.len) &&
	     !curl.easy_setopt(h->easy, CURLOPT_POSTFIELDS, q->body.len ? q->body.data : "") &&
	     !curl.easy_setopt(h->easy, CURLOPT_HTTPHEADER, headers) && !curl.multi_add_handle(h->multi, h->easy);
	if (!ok) {
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	} else {
		if (!http_run(h, e) && !curl.easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status))
			a->status = (unsigned)status;
		curl.multi_remove_handle(h->multi, h->easy);
	}
	curl.slist_free_all(headers);
	free(url);
	return e->code;
}

void http_stop(struct http *h)
{
	atomic_store(&h->stopped, true);
	curl.multi_wakeup(h->multi);
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->easy)
		curl.easy_cleanup(h->easy);
	if (h->multi)
		curl.multi_cleanup(h->multi);
	curl.slist_free_all(h->headers);
	free(h->url);
	free(h);
}
