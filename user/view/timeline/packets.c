// SPDX-License-Identifier: Apache-2.0
#include "view/timeline/packets.h"

enum { PACKET_OF_TRACE = 1 };

/* Fields of TracePacket. */
enum {
	CHROME_EVENTS = 5,
	TIMESTAMP = 8,
	SEQUENCE = 10, /* trusted_packet_sequence_id */
	TRACK_EVENT = 11,
	INTERNED_DATA = 12,
	SEQUENCE_FLAGS = 13,
	TRACK_DESCRIPTOR = 60,
};

/* Values of sequence_flags. */
enum { CLEARED = 1, NEEDS_NUMBERS = 2 };

/* Fields of TrackEvent. */
enum {
	EVENT_CATEGORY = 3, /* category_iids */
	EVENT_ARG = 4,	    /* debug_annotations */
	EVENT_LEGACY = 6,
	EVENT_TYPE = 9,
	EVENT_NAME = 10, /* name_iid */
	EVENT_TRACK = 11,
	EVENT_ARROW_OUT = 47, /* flow_ids */
	EVENT_ARROW_IN = 48,  /* terminating_flow_ids */
	EVENT_VALUE = 44,     /* double_counter_value */
};

/* Fields of LegacyEvent. */
enum { LEGACY_PHASE = 2, LEGACY_ID = 6, LEGACY_ENCLOSING = 12, LEGACY_SCOPE = 14 };

/* Fields of TrackDescriptor, ProcessDescriptor, ThreadDescriptor and CounterDescriptor. */
enum { TRACK_ID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_PLACE = 3, PROCESS_NAME = 6, PROCESS_LABEL = 8 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_PLACE = 3, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_BYTES = 3 };

enum { ARG_KEY = 1, ARG_VALUE_NUMBER = 17 };
enum { TEXT_NUMBER = 1, TEXT_BYTES = 2 };
enum { METADATA = 2, METADATA_NAME = 1, METADATA_TEXT = 2 };

#define SEQUENCE_ID 1u
#define WHOLE_BYTES 1024u /* of a packet that is written at once */
#define SEEN_ONCE   (UINT32_MAX + 1ull)
#define OTHER_SEED  0x9ae16a3b2f90404full

static size_t capped(const char *at, size_t len)
{
	if (len <= PACKETS_TEXT_BYTES)
		return len;
	len = PACKETS_TEXT_BYTES;
	while (len && ((unsigned char)at[len] & 0xc0) == 0x80) /* not within a character */
		len--;
	return len;
}

/* ---- packets */

/* Begins a packet of the only sequence. */
static void packets_begin(struct packets *p, bool numbers)
{
	struct proto *m = &p->packet;

	proto_reset(m);
	proto_u64(m, SEQUENCE, SEQUENCE_ID);
	if (!p->begun || numbers)
		proto_u64(m, SEQUENCE_FLAGS, (p->begun ? 0 : CLEARED) | NEEDS_NUMBERS);
	p->begun = true;
	if (!numbers || !p->interned.b.len)
		return;
	proto_bytes(m, INTERNED_DATA, p->interned.b.data, p->interned.b.len);
	proto_reset(&p->interned);
}

static void timeline_packets_end(struct packets *p)
{
	const struct proto *m = &p->packet;
	char head[PROTO_FIELD_BYTES], *start, *to;

	if (m->failed || p->interned.failed || p->args.failed) {
		p->failed = true;
		return;
	}
	if (m->b.len > WHOLE_BYTES) {
		to = proto_put_varint(proto_put_varint(head, PACKET_OF_TRACE << 3 | 2), m->b.len);
		out_write(p->out, head, (size_t)(to - head));
		out_write(p->out, m->b.data, m->b.len);
		return;
	}
	start = out_reserve(p->out, WHOLE_BYTES + PROTO_FIELD_BYTES);
	to = proto_put_varint(proto_put_varint(start, PACKET_OF_TRACE << 3 | 2), m->b.len);
	memcpy(to, m->b.data, m->b.len);
	out_filled(p->out, (size_t)(to - start) + m->b.len);
}

/* Lets all numbers begin anew, between two events. */
static void limit_numbers(struct packets *p)
{
	if (p->texts.len < PACKETS_TEXTS_MAX)
		return;
	hash_clear(&p->texts);
	proto_reset(&p->interned);
	p->last_number = 0;
	p->begun = false;
	p->generation++;
}

/* ---- numbers of texts */

static uint64_t *text_at(struct packets *p, enum packets_kind kind, const char *at, size_t len)
{
	/* A target that makes two texts with one hash must do so for both. */
	uint64_t *v = hash_put(&p->texts, hash_text(HASH_SEED, at, len),
			       hash_text(OTHER_SEED + len, at, len) << 5 | (uint64_t)kind);

	p->failed |= !v;
	return v;
}

static void give_number(struct packets *p, enum packets_kind kind, const char *at, size_t len)
{
	const size_t begun = proto_begin(&p->interned, kind);

	proto_u64(&p->interned, TEXT_NUMBER, ++p->last_number);
	proto_bytes(&p->interned, TEXT_BYTES, at, len);
	proto_end(&p->interned, begun);
}

uint32_t packets_number(struct packets *p, enum packets_kind kind, const char *at, size_t len)
{
	uint64_t *v;

	len = capped(at, len);
	v = text_at(p, kind, at, len);
	if (!v)
		return 0;
	if (!*v) {
		give_number(p, kind, at, len);
		*v = p->last_number;
	}
	return (uint32_t)*v;
}

/* ---- args */

void packets_arg_u64(struct packets *p, uint32_t key, enum packets_value how, uint64_t v)
{
	const size_t begun = proto_begin(&p->args, EVENT_ARG);

	proto_u64(&p->args, ARG_KEY, key);
	proto_u64(&p->args, how, v);
	proto_end(&p->args, begun);
}

void packets_arg_double(struct packets *p, uint32_t key, double v)
{
	const size_t begun = proto_begin(&p->args, EVENT_ARG);

	proto_u64(&p->args, ARG_KEY, key);
	proto_double(&p->args, PACKETS_DOUBLE, v);
	proto_end(&p->args, begun);
}

/* The text alone, in an arg that has begun. One that comes for the first time may be the only one, and needs no number.
 */
void packets_value_text(struct packets *p, const char *at, size_t len)
{
	uint64_t *v;

	len = capped(at, len);
	v = text_at(p, PACKETS_VALUE, at, len);
	if (!v)
		return;
	if (!*v) {
		*v = SEEN_ONCE;
		proto_bytes(&p->args, PACKETS_STRING, at, len);
		return;
	}
	if (*v == SEEN_ONCE) {
		give_number(p, PACKETS_VALUE, at, len);
		*v = p->last_number;
	}
	proto_u64(&p->args, ARG_VALUE_NUMBER, *v);
}

void packets_arg_text(struct packets *p, uint32_t key, const char *at, size_t len)
{
	const size_t begun = proto_begin(&p->args, EVENT_ARG);

	proto_u64(&p->args, ARG_KEY, key);
	packets_value_text(p, at, len);
	proto_end(&p->args, begun);
}

void packets_arrow(struct packets *p, bool starts, uint64_t id)
{
	proto_fixed64(&p->args, starts ? EVENT_ARROW_OUT : EVENT_ARROW_IN, id);
}

/* ---- tracks */

/* The largest process id that the reader can take. */
static uint32_t shown_pid(uint32_t pid)
{
	return pid & INT32_MAX;
}

static void describe_process(struct packets *p, uint64_t track, uint32_t pid, const struct packets_about *a)
{
	struct proto *m = &p->packet;
	size_t outer, inner;

	packets_begin(p, false);
	outer = proto_begin(m, TRACK_DESCRIPTOR);
	proto_u64(m, TRACK_ID, track);
	inner = proto_begin(m, TRACK_PROCESS);
	proto_u64(m, PROCESS_PID, shown_pid(pid));
	if (a->name)
		proto_bytes(m, PROCESS_NAME, a->name, capped(a->name, a->name_len));
	if (a->label)
		proto_bytes(m, PROCESS_LABEL, a->label, capped(a->label, a->label_len));
	if (a->placed)
		proto_u64(m, PROCESS_PLACE, (uint64_t)a->place);
	proto_end(m, inner);
	proto_end(m, outer);
	timeline_packets_end(p);
}

static void describe_thread(struct packets *p, uint64_t track, uint32_t pid, uint32_t tid,
			    const struct packets_about *a)
{
	const uint64_t parent = packets_process(p, pid);
	struct proto *m = &p->packet;
	size_t outer, inner;

	packets_begin(p, false);
	outer = proto_begin(m, TRACK_DESCRIPTOR);
	proto_u64(m, TRACK_ID, track);
	proto_u64(m, TRACK_PARENT, parent);
	inner = proto_begin(m, TRACK_THREAD);
	proto_u64(m, THREAD_PID, shown_pid(pid));
	proto_u64(m, THREAD_TID, tid);
	if (a->name)
		proto_bytes(m, THREAD_NAME, a->name, capped(a->name, a->name_len));
	if (a->placed)
		proto_u64(m, THREAD_PLACE, (uint64_t)a->place);
	proto_end(m, inner);
	proto_end(m, outer);
	timeline_packets_end(p);
}

/* Returns the id of a track. *new: it has none yet. */
static uint64_t track_of(struct packets *p, struct hash *of, uint64_t a, uint64_t b, bool *new)
{
	uint64_t *at = hash_put(of, a, b);

	*new = at && !*at;
	p->failed |= !at;
	if (*new)
		*at = ++p->ntracks;
	return at ? *at : 0;
}

void packets_about_process(struct packets *p, uint32_t pid, const struct packets_about *about)
{
	bool new;

	describe_process(p, track_of(p, &p->tracks, pid, 0, &new), pid, about);
}

void packets_about_thread(struct packets *p, uint32_t pid, uint32_t tid, const struct packets_about *about)
{
	bool new;

	describe_thread(p, track_of(p, &p->tracks, pid, tid + 1ull, &new), pid, tid, about);
}

uint64_t packets_process(struct packets *p, uint32_t pid)
{
	static const struct packets_about nothing;
	bool new;
	uint64_t track = track_of(p, &p->tracks, pid, 0, &new);

	if (new)
		describe_process(p, track, pid, &nothing);
	return track;
}

uint64_t packets_thread(struct packets *p, uint32_t pid, uint32_t tid)
{
	static const struct packets_about nothing;
	bool new;

	if (p->last.track && p->last.pid == pid && p->last.tid == tid)
		return p->last.track;
	p->last.pid = pid;
	p->last.tid = tid;
	p->last.track = track_of(p, &p->tracks, pid, tid + 1ull, &new);
	if (new)
		describe_thread(p, p->last.track, pid, tid, &nothing);
	return p->last.track;
}

uint64_t packets_counter(struct packets *p, uint32_t pid, const char *name, size_t len, bool bytes)
{
	const uint64_t parent = packets_process(p, pid);
	struct proto *m = &p->packet;
	size_t outer, inner;
	uint64_t track;
	bool new;

	len = capped(name, len);
	track = track_of(p, &p->counters, hash_text(HASH_SEED, name, len), hash_text(OTHER_SEED + pid, name, len),
			 &new);
	if (!new)
		return track;
	packets_begin(p, false);
	outer = proto_begin(m, TRACK_DESCRIPTOR);
	proto_u64(m, TRACK_ID, track);
	proto_u64(m, TRACK_PARENT, parent);
	proto_bytes(m, TRACK_NAME, name, len);
	inner = proto_begin(m, TRACK_COUNTER);
	if (bytes)
		proto_u64(m, COUNTER_UNIT, COUNTER_UNIT_BYTES);
	proto_end(m, inner);
	proto_end(m, outer);
	timeline_packets_end(p);
	return track;
}

/* ---- events */

static void put_legacy(struct proto *m, const struct packets_event *e)
{
	const size_t begun = proto_begin(m, EVENT_LEGACY);

	proto_u64(m, LEGACY_PHASE, (unsigned char)e->letter);
	if (e->id)
		proto_u64(m, LEGACY_ID, e->id);
	if (e->enclosing)
		proto_u64(m, LEGACY_ENCLOSING, 1);
	if (e->scope)
		proto_u64(m, LEGACY_SCOPE, e->scope);
	proto_end(m, begun);
}

static void put_args(struct packets *p)
{
	char *to = proto_room(&p->packet, p->args.b.len);

	if (to && p->args.b.len) {
		memcpy(to, p->args.b.data, p->args.b.len);
		p->packet.b.len += p->args.b.len;
	}
	proto_reset(&p->args);
}

void packets_event(struct packets *p, uint64_t track, uint64_t ts_ns, const struct packets_event *e)
{
	struct proto *m = &p->packet;
	size_t outer;

	packets_begin(p, e->name || e->category || p->interned.b.len);
	proto_u64(m, TIMESTAMP, ts_ns);
	outer = proto_begin(m, TRACK_EVENT);
	if (e->type)
		proto_u64(m, EVENT_TYPE, e->type);
	proto_u64(m, EVENT_TRACK, track);
	if (e->category)
		proto_u64(m, EVENT_CATEGORY, e->category);
	if (e->name)
		proto_u64(m, EVENT_NAME, e->name);
	if (e->value)
		proto_double(m, EVENT_VALUE, *e->value);
	put_args(p);
	if (!e->type)
		put_legacy(m, e);
	proto_end(m, outer);
	timeline_packets_end(p);
	limit_numbers(p);
}

void packets_end(struct packets *p, uint64_t track, uint64_t ts_ns)
{
	struct proto *m = &p->packet;
	size_t outer;

	packets_begin(p, false);
	proto_u64(m, TIMESTAMP, ts_ns);
	outer = proto_begin(m, TRACK_EVENT);
	proto_u64(m, EVENT_TYPE, PACKETS_END);
	proto_u64(m, EVENT_TRACK, track);
	proto_end(m, outer);
	timeline_packets_end(p);
}

void packets_metadata(struct packets *p, const char *name, const char *text, size_t len)
{
	struct proto *m = &p->packet;
	size_t outer, inner;

	packets_begin(p, false);
	outer = proto_begin(m, CHROME_EVENTS);
	inner = proto_begin(m, METADATA);
	proto_bytes(m, METADATA_NAME, name, strlen(name));
	proto_bytes(m, METADATA_TEXT, text, len);
	proto_end(m, inner);
	proto_end(m, outer);
	timeline_packets_end(p);
}

void packets_fini(struct packets *p)
{
	proto_fini(&p->args);
	proto_fini(&p->packet);
	proto_fini(&p->interned);
	hash_fini(&p->texts);
	hash_fini(&p->tracks);
	hash_fini(&p->counters);
}
