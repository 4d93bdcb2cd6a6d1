// SPDX-License-Identifier: Apache-2.0
/*
 * The ranges of NVTX that NCCL 2.25 and later have around their functions, with its names, schemas and payloads, and
 * nothing else of it. A caller launches kernels between nccl_push() and nccl_pop().
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BYTES	  "Message size [bytes]"
#define COMM	  "NCCL communicator ID"
#define STATIC(n) (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (n))
#define REDUCTION STATIC(19)
#define NCALLS	  9

/* Bytes of a collective are followed by its root or peer, and by its reduction, if it has them. */
struct payload {
	uint64_t comm;
	size_t bytes;
	int first, second;
};

struct init {
	uint64_t comm;
	int ranks, rank, device;
};

static const struct call {
	const char *name;
	int schema; /* 0: it carries nothing */
	const char *first;
	uint64_t type;
	const char *second;
} calls[NCALLS] = {
	{"ncclAllReduce", 5, "Reduction operation", REDUCTION, NULL},
	{"ncclAllGather", 4, NULL, 0, NULL},
	{"ncclBroadcast", 6, "Root", NVTX_PAYLOAD_ENTRY_TYPE_INT, NULL},
	{"ncclReduceScatter", 7, "Reduction operation", REDUCTION, NULL},
	{"ncclReduce", 8, "Root", NVTX_PAYLOAD_ENTRY_TYPE_INT, "Reduction operation"},
	{"ncclSend", 9, "Peer rank", NVTX_PAYLOAD_ENTRY_TYPE_INT, NULL},
	{"ncclRecv", 10, "Peer rank", NVTX_PAYLOAD_ENTRY_TYPE_INT, NULL},
	{"ncclGroupStart", 0, NULL, 0, NULL},
	{"ncclGroupEnd", 0, NULL, 0, NULL},
};

static nvtxDomainHandle_t domain;
static nvtxStringHandle_t strings[NCALLS];

static void add_schema(const nvtxPayloadSchemaEntry_t *entries, size_t n, int schema, size_t bytes)
{
	const nvtxPayloadSchemaAttr_t a = {
		.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
			     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
		.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		.entries = entries,
		.numEntries = n,
		.payloadStaticSize = bytes,
		.schemaId = STATIC(schema)};

	nvtxPayloadSchemaRegister(domain, &a);
}

static void add_call(const struct call *c)
{
	nvtxPayloadSchemaEntry_t e[4] = {{.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = COMM},
					 {.type = NVTX_PAYLOAD_ENTRY_TYPE_SIZE, .name = BYTES}};
	size_t n = 2;

	if (c->first)
		e[n++] = (nvtxPayloadSchemaEntry_t){
			.type = c->type, .name = c->first, .offset = offsetof(struct payload, first)};
	if (c->second)
		e[n++] = (nvtxPayloadSchemaEntry_t){
			.type = REDUCTION, .name = c->second, .offset = offsetof(struct payload, second)};
	add_schema(e, n, c->schema, sizeof(struct payload));
}

/* NCCL calls NVTX for the first time when it makes a communicator. */
void nccl_start(void);
void nccl_start(void)
{
	static const nvtxPayloadEnum_t words[] = {{"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}, {"Min", 3, 0}};
	static const nvtxPayloadSchemaEntry_t init[] = {{.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, .name = COMM},
							{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = "No. of ranks"},
							{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = "Rank"},
							{.type = NVTX_PAYLOAD_ENTRY_TYPE_INT, .name = "CUDA device"}};
	const nvtxPayloadEnumAttr_t e = {
		.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			     NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
		.entries = words,
		.numEntries = 4,
		.sizeOfEnum = sizeof(int),
		.schemaId = REDUCTION};
	int i;

	domain = nvtxDomainCreateA("NCCL");
	nvtxPayloadEnumRegister(domain, &e);
	add_schema(init, 4, 11, sizeof(struct init));
	for (i = 0; i < NCALLS; i++) {
		strings[i] = nvtxDomainRegisterStringA(domain, calls[i].name);
		if (calls[i].schema)
			add_call(&calls[i]);
	}
}

static void push(nvtxStringHandle_t name, const nvtxPayloadData_t *data)
{
	nvtxEventAttributes_t e = {.version = NVTX_VERSION,
				   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
				   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
				   .message.registered = name};

	if (data) {
		e.payloadType = NVTX_PAYLOAD_TYPE_EXT;
		e.reserved0 = 1;
		e.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(data);
	}
	nvtxDomainRangePushEx(domain, &e);
}

void nccl_init(uint64_t comm, int ranks, int rank);
void nccl_init(uint64_t comm, int ranks, int rank)
{
	const struct init payload = {comm, ranks, rank, 0};
	const nvtxPayloadData_t data = {STATIC(11), sizeof(payload), &payload};

	push(nvtxDomainRegisterStringA(domain, "ncclCommInitRankConfig"), NULL);
	nvtxRangePopPayload(domain, &data, 1);
}

/* first: root, peer, or the reduction of functions without either; second: reduction. Returns -1 if there is no such
 * function. */
int nccl_push(const char *name, uint64_t comm, size_t bytes, int first, int second);
int nccl_push(const char *name, uint64_t comm, size_t bytes, int first, int second)
{
	const struct payload payload = {comm, bytes, first, second};
	int i;

	for (i = 0; i < NCALLS; i++) {
		const nvtxPayloadData_t data = {STATIC(calls[i].schema), sizeof(payload), &payload};

		if (strcmp(calls[i].name, name))
			continue;
		push(strings[i], calls[i].schema ? &data : NULL);
		return 0;
	}
	return -1;
}

void nccl_pop(void);
void nccl_pop(void)
{
	nvtxDomainRangePop(domain);
}
