// SPDX-License-Identifier: Apache-2.0
/*
 * A hostile process, as BPF reports it: records from the ring, and the names, arguments, tensors and stacks that BPF
 * has read there. Lists of the agent, which have the same contents, come here through sym_list_id(). The input is
 * events: a record, or a list. Answers of BPF's maps are the next bytes of the input.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "elf/elf.h"
#include "mxbpf_agent.h"
#include "records/kinds.h"
#include "symbols/priv.h"
#include "target/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_att_names_fd(const struct att *a);
int __wrap_att_args_fd(const struct att *a);
int __wrap_att_tensors_fd(const struct att *a);
int __wrap_att_read_stack(const struct att *a, uint64_t id, struct mxbpf_stack *s);
bool __wrap_att_has(const struct att *a, pid_t tgid, struct mxbpf_target *out);
int __wrap_tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n);

enum { NAMES_MAP = 1000, ARGS_MAP, TENSORS_MAP };

static const uint8_t *input, *input_end;
static struct tgt target = {.pid = 1, .pidfd = -1, .procfd = -1, .mapsfd = -1, .memfd = -1};
static struct tgt_lib lib; /* this program */
static struct plan plan = {.lib = &lib};

static bool take(void *to, size_t n)
{
	if ((size_t)(input_end - input) < n)
		return false;
	memcpy(to, input, n);
	input += n;
	return true;
}

static uint8_t byte(void)
{
	return input < input_end ? *input++ : 0;
}

/* ---- BPF's maps, and the memory of the process */

int __wrap_att_names_fd(const struct att *a)
{
	(void)a;
	return NAMES_MAP;
}

int __wrap_att_args_fd(const struct att *a)
{
	(void)a;
	return ARGS_MAP;
}

int __wrap_att_tensors_fd(const struct att *a)
{
	(void)a;
	return TENSORS_MAP;
}

bool __wrap_att_has(const struct att *a, pid_t tgid, struct mxbpf_target *out)
{
	(void)a;
	(void)tgid;
	(void)out;
	return false;
}

/* BPF's programs write these, so counts of frames are right. */
int __wrap_att_read_stack(const struct att *a, uint64_t id, struct mxbpf_stack *s)
{
	(void)a;
	(void)id;
	if (!take(s, sizeof(*s)))
		return -ENOENT;
	s->n %= MXBPF_STACK_FRAMES_MAX + 1;
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct mxbpf_name_part *part = value;
	struct mxbpf_tensor *tensor = value;
	size_t i;

	(void)key;
	if (input == input_end || (byte() & 7) == 7)
		return -ENOENT;
	if (fd == TENSORS_MAP) {
		memset(tensor, 0, sizeof(*tensor));
		tensor->ndim = byte() % (MXBPF_TENSOR_DIMS + 2);
		tensor->strided = byte() & 1;
		tensor->dtype = byte();
		for (i = 0; i < MXBPF_TENSOR_DIMS; i++)
			tensor->dims[i] = (int8_t)byte();
		return 0;
	}
	memset(part, 0x41, sizeof(*part));
	part->tag = byte();
	part->more = byte() & 1;
	part->len = byte();
	if (part->tag == 0xff && !part->more) { /* two ids */
		part->tag = MXBPF_NAME_TAG_PAIR;
		part->len = 16;
	}
	if (part->len == 0xff)
		take(&part->len, sizeof(part->len));
	for (i = 0; i < sizeof(part->text) && i < part->len && input < input_end; i++)
		part->text[i] = (char)byte();
	if (fd == ARGS_MAP) /* words; small numbers have a meaning */
		for (i = 0; i + 8 <= sizeof(part->text); i += 8)
			memset(part->text + i + 2, 0, 6);
	return 0;
}

/* Objects, their types and the names of types. They may be any bytes. Most of the input is such bytes. */
int __wrap_tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n)
{
	(void)t;
	(void)addr;
	return take(buf, n) ? 0 : -EFAULT;
}

/* ---- events */

/* Makes ids those of constants and of objects, which a fuzzer does not guess. */
static void shape_ids(struct mxbpf_rec *r)
{
	struct kind_id_walk w = {0};
	uint8_t shape;

	r->tgid = 1;
	while (kind_next_id(r, &w)) {
		shape = byte();
		if (!(w.flags & KIND_ID_SHORT))
			*(uint64_t *)((char *)r + w.off) |=
				(shape & 1 ? MXBPF_NAME_STATIC_BIT : 0) | (shape & 2 ? MXBPF_NAME_OBJECT_BIT : 0);
	}
}

static void send_record(struct sym *s)
{
	union {
		struct mxbpf_rec rec;
		uint8_t bytes[512];
	} r;
	const unsigned first = byte(), number = first & 0x7f;
	const struct kind *k = kind_numbered(number);
	const size_t size = k ? k->bytes + byte() % 3 * 8 : 16;

	memset(&r, 0, sizeof(r));
	if (size > sizeof(r))
		return;
	if (!take(r.bytes, size))
		take(r.bytes, (size_t)(input_end - input));
	if (k) {
		r.rec.kind = (uint16_t)number;
		r.rec.size = (uint16_t)size;
	}
	if (kind_sent(&r.rec, size)) {
		if (first & 0x80)
			shape_ids(&r.rec);
		sym_learn(s, &r.rec);
	}
}

static void send_list(struct sym *s, enum mxbpf_agent_list kind)
{
	const uint32_t n = 1 + byte() % MXBPF_AGENT_LIST_WORDS;
	uint64_t *list = calloc(n, sizeof(*list));
	uint32_t i, low;

	if (!list)
		abort();
	for (i = 0; i < n && input < input_end; i++) {
		low = byte();
		list[i] = low & 0x80 ? MXBPF_AGENT_TENSOR | (uint64_t)byte() << 32 | (uint64_t)byte() << 16 | byte()
				     : low;
		if (low == 0x7f)
			take(&list[i], sizeof(list[i]));
	}
	sym_list_id(s, 1, kind, list, n);
	free(list);
}

static void open_lib(void)
{
	if (!lib.elf && elf_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &lib.elf, NULL))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sym_opts o = {.target = &target, .plan = &plan, .model = mdl_new()};
	struct sym *s;

	open_lib();
	input = data;
	input_end = data + size;
	plan.adp = adapters[byte() & 1];
	o.apart = byte() & 1;
	s = sym_new(&o);
	if (!s || !o.model)
		abort();
	sym_attached(s, (const struct att *)&target);
	while (input < input_end) {
		switch (byte() & 3) {
		case 0:
			send_list(s, MXBPF_AGENT_LIST_ARGS);
			break;
		case 1:
			send_list(s, MXBPF_AGENT_LIST_STACK);
			break;
		default:
			send_record(s);
		}
	}
	sym_retry(s);
	sym_free(s);
	mdl_free(o.model);
	return 0;
}
