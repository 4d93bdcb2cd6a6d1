// SPDX-License-Identifier: Apache-2.0
/* Tests what the environment says to senders of OTLP, where profiles go, and answers of collectors. */
#include "cmd/serve/otel.h"

#include "cmd/serve/push_profile.h"
#include "metrics/metrics.h"
#include "unit.h"

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void set_all(const char *all, const char *metrics)
{
	set("OTEL_EXPORTER_OTLP_ENDPOINT", all);
	set("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", metrics);
}

static bool url_is(const char *given, const char *want)
{
	struct err e = {0};
	FREED(memory_freed) char *url = otel_url(given, &e);
	const bool same = want ? url && !strcmp(url, want) : !url;

	return same && !e.code;
}

static void test_urls(void)
{
	static const struct {
		const char *given, *all, *metrics, *want;
	} cases[] = {
		{NULL, NULL, NULL, NULL},
		{NULL, "", "", NULL},
		{NULL, "http://h:4318", NULL, "http://h:4318/v1/metrics"},
		{NULL, "http://h:4318/base/", NULL, "http://h:4318/base/v1/metrics"},
		{NULL, "http://h", "http://own/as/it/is", "http://own/as/it/is"},
		{"http://g", "http://h", "http://own", "http://g/v1/metrics"},
		{"http://g/v1/metrics", NULL, NULL, "http://g/v1/metrics"},
		{"none", "http://h", "http://own", NULL},
	};
	struct err e = {0};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_all(cases[i].all, cases[i].metrics);
		CHECK(url_is(cases[i].given, cases[i].want));
		CHECK(otel_asks(cases[i].given) == (cases[i].want != NULL));
	}
	set_all("http://h", NULL);
	set("OTEL_METRICS_EXPORTER", "none");
	CHECK(url_is(NULL, NULL) && url_is("http://g", "http://g/v1/metrics"));
	set("OTEL_METRICS_EXPORTER", NULL);
	set("OTEL_SDK_DISABLED", "True");
	CHECK(url_is(NULL, NULL));
	set("OTEL_SDK_DISABLED", NULL);
	set("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
	CHECK(!otel_url(NULL, &e) && e.cls == ERR_USAGE);
	set("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf");
	CHECK(url_is(NULL, "http://h/v1/metrics"));
}

static bool headers_are(const char *list, const char *const *want)
{
	struct err e = {0};
	char **headers;
	size_t i;
	bool same;

	set("TEST_HEADERS", list);
	headers = otel_headers("TEST_HEADERS", &e);
	if (!want)
		return !headers && e.cls == ERR_USAGE && !strstr(e.why, "secret");
	same = headers;
	for (i = 0; same && want[i]; i++)
		same = headers[i] && !strcmp(headers[i], want[i]);
	same = same && !headers[i];
	otel_headers_free(headers);
	return same;
}

static void test_headers(void)
{
	CHECK(headers_are(NULL, (const char *const[]){NULL}));
	CHECK(headers_are(" , ", (const char *const[]){NULL}));
	CHECK(headers_are("a=1", (const char *const[]){"a: 1", NULL}));
	CHECK(headers_are("a = b%3Dc%2c , X-Y=%zz,e=", (const char *const[]){"a: b=c,", "X-Y: %zz", "e: ", NULL}));
	CHECK(headers_are("authorization=Basic dTpw==", (const char *const[]){"authorization: Basic dTpw==", NULL}));
	CHECK(headers_are("a=secret%0aHost:%20x", NULL));
	CHECK(headers_are("a=1,secret", NULL));
	CHECK(headers_are("=secret", NULL));
}

static const char *value_of(const struct buf *resource, const char *name)
{
	const char *value = NULL;
	size_t i;

	for (i = 0; i < buf_count(resource, struct met_attribute); i++)
		if (!strcmp(buf_at(resource, struct met_attribute, i)->name, name)) {
			CHECK(!value); /* no name comes twice */
			value = buf_at(resource, struct met_attribute, i)->value;
		}
	return value ? value : "";
}

static void test_resource(void)
{
	FREED(otel_resource_fini) struct buf r = {0};
	struct err e = {0};

	CHECK(!otel_resource(&r, &e));
	CHECK(!strcmp(value_of(&r, "service.name"), "mxbpf") && *value_of(&r, "host.name"));
	CHECK(!strcmp(value_of(&r, "service.instance.id"), value_of(&r, "host.name")));
	otel_resource_fini(&r);
	set("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,host.name=h%C3%A9,x=%ff");
	set("OTEL_SERVICE_NAME", "mine");
	r = (struct buf){0};
	CHECK(!otel_resource(&r, &e));
	CHECK(!strcmp(value_of(&r, "service.name"), "mine") && !strcmp(value_of(&r, "host.name"), "h\xc3\xa9"));
	CHECK(!strcmp(value_of(&r, "x"), "\\xff")); /* no invalid UTF-8 */
}

static void test_timeout(void)
{
	static const char *const bad[] = {"0", "-1", "10s", "x", "99999999999999999999"};
	struct err e = {0};
	size_t i;

	CHECK(!otel_timeout_ns(&e) && !e.code);
	set("OTEL_EXPORTER_OTLP_TIMEOUT", "2500");
	CHECK(otel_timeout_ns(&e) == 2500000000ull && !e.code);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", bad[i]);
		e = (struct err){0};
		otel_timeout_ns(&e);
		CHECK(e.cls == ERR_USAGE);
	}
}

/* A message whose partial success has 3 rejected points, an unknown field, and a reason. */
static const unsigned char partial[] = {0x10, 0x07, 0x0a, 0x09, 0x08, 0x03, 0x1d, 0,   0,  0,
					0,    0x12, 0x00, 0x0a, 0x04, 0x12, 0x02, 'n', 'o'};

static void test_answers(void)
{
	unsigned char bytes[64];
	const char *why;
	uint64_t rejected;
	size_t len, i, k;

	CHECK(met_read_otlp("", 0, &rejected, &why, &len) && !rejected && !len);
	CHECK(met_read_otlp(partial, sizeof(partial), &rejected, &why, &len));
	CHECK(rejected == 3 && len == 2 && !memcmp(why, "no", 2));
	for (i = 0; i < sizeof(partial); i++) { /* cut, in memory of its own, so that ASan sees a byte too many */
		unsigned char *cut = malloc(i + 1);

		memcpy(cut, partial, i);
		met_read_otlp(cut, i, &rejected, &why, &len);
		free(cut);
	}
	srand(1);
	for (i = 0; i < 20000; i++) {
		for (k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)rand();
		bytes[0] = 0x0a;
		bytes[1] &= 63;
		if (met_read_otlp(bytes, sizeof(bytes), &rejected, &why, &len))
			CHECK(len <= sizeof(bytes));
	}
}

/* An answer of gRPC-Web: an empty message, and these trailers. */
static bool refuses(const char *trailers, char why[PUSH_WHY_BYTES])
{
	const push_refused_fn fn = push_profile_refused(push_profile_form("http://h/x.ProfileStoreService/WriteRaw"));
	const size_t len = strlen(trailers);
	FREED(memory_freed) char *answer = malloc(10 + len);
	bool refused;

	memcpy(answer, "\0\0\0\0\0\x80\0\0\0", 9);
	answer[9] = (char)len;
	memcpy(answer + 10, trailers, len);
	refused = fn(answer, 10 + len, why);
	answer[9]++; /* longer than what there is */
	CHECK(fn(answer, 10 + len, why) && fn(answer, 7, why) && fn(answer, 0, why));
	fn(answer, 10 + len - 1, why);
	answer[9]--;
	fn(answer, 10 + len, why);
	return refused;
}

static void test_grpc(void)
{
	char why[PUSH_WHY_BYTES];

	CHECK(!refuses("grpc-status: 0\r\n", why) && !refuses("a:b\r\ngrpc-status:0", why));
	CHECK(refuses("grpc-status: 03\r\n", why) && refuses("grpc-status:", why) && refuses("", why));
	CHECK(refuses("grpc-status:7\r\ngrpc-message:\x1b[31mno\r\n", why) && !strchr(why, '\x1b') &&
	      strstr(why, "no"));
}

static void test_forms(void)
{
	CHECK(push_profile_form("http://h:4040/ingest") >= 0 && push_profile_form("https://h/a/ingest?x=/b") >= 0);
	CHECK(push_profile_form("http://h/api/profiles/writeraw") > push_profile_form("http://h/ingest"));
	CHECK(push_profile_form("http://h:4040") < 0 && push_profile_form("http://h/x?/ingest") < 0);
}

int main(void)
{
	TEST("the option counts more than the variable for metrics, and that more than the one for all")
	test_urls();
	TEST("headers are decoded, and one that would make another header is refused without its value")
	test_headers();
	TEST("the resource has each attribute once, in valid UTF-8")
	test_resource();
	TEST("the timeout is in milliseconds")
	test_timeout();
	TEST("an answer of any bytes is read within its length")
	test_answers();
	TEST("an answer of gRPC-Web says whether a profile was taken")
	test_grpc();
	TEST("the path of the URL says what takes the profiles")
	test_forms();
	UNIT_MAIN_END;
}
