// SPDX-License-Identifier: Apache-2.0
/* Tests the timeline in Perfetto's own format with a decoder of its own: what each packet says, and what bounds it. */
#include "chrome_tape.h"
#include "view/timeline/from_json.h"

/* ---- the decoder */

struct bytes {
	const unsigned char *at, *end;
};

struct field {
	unsigned number, wire;
	uint64_t v;	    /* of a number */
	struct bytes bytes; /* of a text or a message */
};

static bool varint(struct bytes *b, uint64_t *v)
{
	unsigned shift = 0;

	for (*v = 0; b->at < b->end && shift < 64; shift += 7) {
		*v |= (uint64_t)(*b->at & 127) << shift;
		if (!(*b->at++ & 128))
			return true;
	}
	return false;
}

/* Returns whether there is another whole field. */
static bool next(struct bytes *b, struct field *f)
{
	uint64_t tag, n;
	unsigned i;

	if (!varint(b, &tag))
		return false;
	f->number = (unsigned)(tag >> 3);
	f->wire = tag & 7;
	if (f->wire == 0)
		return varint(b, &f->v);
	if (f->wire == 1 && b->end - b->at >= 8) {
		for (f->v = 0, i = 0; i < 8; i++)
			f->v |= (uint64_t)*b->at++ << 8 * i;
		return true;
	}
	if (f->wire != 2 || !varint(b, &n) || n > (uint64_t)(b->end - b->at))
		return false;
	f->bytes = (struct bytes){b->at, b->at + n};
	b->at += n;
	return true;
}

static uint64_t number_in(struct bytes b, unsigned field)
{
	uint64_t v = 0;
	struct field f;

	while (next(&b, &f))
		if (f.number == field)
			v = f.v;
	return v;
}

static struct bytes bytes_in(struct bytes b, unsigned field)
{
	struct bytes found = {0};
	struct field f;

	while (next(&b, &f))
		if (f.number == field)
			found = f.bytes;
	return found;
}

#define TEXTS (1u << 17)

/* A file as packets, and the texts that have a number now. */
struct file {
	unsigned char *data;
	size_t len;
	struct bytes rest;
	struct bytes *texts[30]; /* by kind and number */
	unsigned cleared, packets, bad;
};

struct packet {
	struct bytes all, event, track;
	uint64_t ts, type, on;
	struct bytes name, category;
};

static void learn(struct file *f, struct bytes interned)
{
	struct field kind;

	while (next(&interned, &kind)) {
		const uint64_t n = number_in(kind.bytes, 1);

		if (kind.number >= 30 || !n || n >= TEXTS || f->texts[kind.number][n].at)
			f->bad++; /* unknown, or a number has two meanings */
		else
			f->texts[kind.number][n] = bytes_in(kind.bytes, 2);
	}
}

static struct bytes text_of(struct file *f, unsigned kind, uint64_t n)
{
	const struct bytes none = {0};

	f->bad += n && (n >= TEXTS || !f->texts[kind][n].at);
	return n && n < TEXTS ? f->texts[kind][n] : none;
}

static void clear(struct file *f)
{
	unsigned i;

	for (i = 0; i < 30; i++)
		memset(f->texts[i], 0, TEXTS * sizeof(struct bytes));
	f->cleared++;
}

/* The next packet. Returns false at the end, or where the file is cut. */
static bool packet(struct file *f, struct packet *p)
{
	struct field outer;

	if (!next(&f->rest, &outer))
		return false;
	*p = (struct packet){
		.all = outer.bytes, .event = bytes_in(outer.bytes, 11), .track = bytes_in(outer.bytes, 60)};
	f->bad += outer.number != 1 || outer.wire != 2 || number_in(p->all, 10) != 1;
	f->packets++;
	if (number_in(p->all, 13) & 1)
		clear(f);
	learn(f, bytes_in(p->all, 12));
	p->ts = number_in(p->all, 8);
	p->type = number_in(p->event, 9);
	p->on = number_in(p->event, 11);
	p->name = text_of(f, 2, number_in(p->event, 10));
	p->category = text_of(f, 1, number_in(p->event, 3));
	f->bad += p->name.at && !(number_in(p->all, 13) & 2);
	return true;
}

static bool text_is(struct bytes b, const char *text)
{
	return (size_t)(b.end - b.at) == strlen(text) && !memcmp(b.at, text, strlen(text));
}

/* The arg of an event with this key, as a message. */
static struct bytes arg(struct file *f, const struct packet *p, const char *key)
{
	struct bytes b = p->event, none = {0};
	struct field a;

	while (next(&b, &a))
		if (a.number == 4 && text_is(text_of(f, 3, number_in(a.bytes, 1)), key))
			return a.bytes;
	return none;
}

static struct file file_of(struct tape *t)
{
	char path[] = "/tmp/mxbpf-test-pftrace-XXXXXX";
	struct file f = {0};
	int fd = mkstemp(path);
	FILE *in;
	unsigned i;

	t->ops = &view_pftrace;
	CHECK(fd >= 0 && !tape_write(t, path));
	close(fd);
	in = fopen(path, "r");
	unlink(path);
	fseek(in, 0, SEEK_END);
	f.len = (size_t)ftell(in);
	rewind(in);
	f.data = malloc(f.len + 1);
	CHECK(fread(f.data, 1, f.len, in) == f.len);
	fclose(in);
	f.rest = (struct bytes){f.data, f.data + f.len};
	for (i = 0; i < 30; i++)
		f.texts[i] = calloc(TEXTS, sizeof(struct bytes));
	return f;
}

static void file_free(struct file *f)
{
	unsigned i;

	for (i = 0; i < 30; i++)
		free(f->texts[i]);
	free(f->data);
}

/* ---- promises */

static void test_span(void)
{
	TEST("a span is a beginning and an end on the track of its thread, with its name, its category and its args")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct packet p, begun = {0}, ended = {0};
		uint64_t track = 0;

		name(&t, OP, MXBPF_NAME_SPAN, "conv", 4);
		op(&t, PID + 1, 1000, 3500, 0xabc);
		FREED(file_free) struct file f = file_of(&t);
		while (packet(&f, &p)) {
			const struct bytes thread = bytes_in(p.track, 4);

			if (thread.at && number_in(thread, 1) == PID && number_in(thread, 2) == PID + 1)
				track = number_in(p.track, 1);
			begun = p.type == 1 ? p : begun;
			ended = p.type == 2 ? p : ended;
		}
		CHECK(!f.bad && f.cleared == 1 && track);
		CHECK(begun.ts == 1000 && begun.on == track && text_is(begun.name, "conv") &&
		      text_is(begun.category, "cpu_op"));
		CHECK(ended.ts == 3500 && ended.on == track);
		CHECK(number_in(arg(&f, &begun, "self_ns"), 3) == 2500);
		CHECK(text_is(bytes_in(arg(&f, &begun, "device"), 6), "cpu/0"));
		CHECK(text_is(bytes_in(arg(&f, &begun, "link"), 6), "0xabc"));
	}

	TEST("spans that overlap have tracks of their own, and an arrow has the same id at both ends")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct packet p;
		uint64_t on[2] = {0}, out = 0, in = 0;
		unsigned n = 0;

		edge(&t, PID, 150, 100, 7);
		span(&t, API, PID, 100, 200);
		async_op(&t, PID, 300, 500, 7);
		async_op(&t, PID, 400, 600, 8);
		FREED(file_free) struct file f = file_of(&t);
		while (packet(&f, &p)) {
			if (p.type != 1)
				continue;
			if (text_is(p.category, "cpu_op") && n < 2)
				on[n++] = p.on;
			out += number_in(p.event, 47);
			in += number_in(p.event, 48);
		}
		CHECK(!f.bad && n == 2 && on[0] != on[1] && out && out == in);
	}
}

static void test_bounds(void)
{
	TEST("texts from the target become valid UTF-8")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct packet p, begun = {0};

		name(&t, API, MXBPF_NAME_SPAN, "a\xff\"\\\n\x01z", 7);
		span(&t, API, PID, 100, 200);
		FREED(file_free) struct file f = file_of(&t);
		while (packet(&f, &p))
			begun = p.type == 1 ? p : begun;
		CHECK(!f.bad && text_is(begun.name, "a\xef\xbf\xbd\"\\\n\x01z"));
	}

	TEST("the last number of args ends where the args end, whatever stands behind them")
	{
		static const char text[] = "\"share\":1.5999";
		struct packets p = {0};
		struct from_json f = {.to = &p};
		double v = 0;

		from_json_args(&f, text, strlen(text) - 3);
		if (p.args.b.len > sizeof(v)) /* the value stands last */
			memcpy(&v, p.args.b.data + p.args.b.len - sizeof(v), sizeof(v));
		CHECK(!f.failed && v == 1.5);
		from_json_fini(&f);
		packets_fini(&p);
	}

	TEST("what the trace is about is whole, also if it is longer than the buffer of an output")
	{
		const size_t len = 600000;
		FREED(memory_freed) char *command = malloc(len + 1);
		FREED(tape_free) struct tape t = tape_new();

		memset(command, 'x', len);
		command[len] = '\0';
		t.session.cmdline = command;
		span(&t, API, PID, 100, 200);
		FREED(file_free) struct file f = file_of(&t);
		CHECK(f.len > len && memmem(f.data, f.len, "{\"mxbpf_version\":", 17) &&
		      memmem(f.data, f.len, "\"probes\":", 9));
	}

	TEST("numbers of texts begin anew when there are too many, and no packet needs an older one")
	{
		const unsigned spans = 90000;
		FREED(tape_free) struct tape t = tape_new();
		struct packet p;
		unsigned i, n = 0, wrong = 0;

		for (i = 0; i < spans; i++)
			op(&t, PID, 1000 + 10 * i, 1005 + 10 * i, 0x10000 + i); /* each link is a text of its own */
		FREED(file_free) struct file f = file_of(&t);
		while (packet(&f, &p)) {
			n += p.type == 1;
			wrong += p.type == 1 && !text_is(p.category, "cpu_op");
		}
		CHECK(!f.bad && n == spans && !wrong && f.cleared == 2);
	}

	TEST("a file that is cut has all packets before the cut, and the tracks come before what is on them")
	{
		FREED(tape_free) struct tape t = tape_new();
		struct packet p;
		uint64_t known = 0;
		unsigned whole, i, wrong = 0;
		size_t cut;

		for (i = 0; i < 20; i++)
			span(&t, API, PID + i % 3, 100 * i, 100 * i + 50);
		FREED(file_free) struct file f = file_of(&t);
		while (packet(&f, &p)) {
			known = p.track.at && number_in(p.track, 1) > known ? number_in(p.track, 1) : known;
			wrong += p.on > known;
		}
		CHECK(!f.bad && !wrong);
		whole = f.packets;
		for (cut = f.len - 1; cut > f.len / 2; cut--) {
			f.packets = 0;
			f.rest = (struct bytes){f.data, f.data + cut};
			while (packet(&f, &p))
				;
			wrong += !f.packets || f.packets >= whole;
		}
		CHECK(!wrong);
	}

	TEST("a plain span needs at most 60 bytes")
	{
		const unsigned spans = 10000;
		FREED(tape_free) struct tape t = tape_new();
		unsigned i;

		for (i = 0; i < spans; i++) {
			struct mxbpf_span *s =
				span(&t, API, PID, 1000000000ull + 3000ull * i, 1000002000ull + 3000ull * i);

			s->flags = MXBPF_SPAN_ACCOUNT;
			s->cpu = s->account.end_cpu = 1;
			s->account.on_cpu_ns = s->dur_ns;
		}
		FREED(file_free) struct file f = file_of(&t);
		CHECK(f.len < 60ul * spans);
	}
}

int main(void)
{
	test_span();
	test_bounds();
	return unit_end();
}
