// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of NVTX that carry something: the ranges of NCCL, with its schemas and names, by NVIDIA's header for C++;
 * plain payloads, colors and categories; names like those of emit_nvtx() of PyTorch; pushes and pops that are not
 * balanced. The account has the form of ranges.c.
 */
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvtx3.hpp>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <unistd.h>

namespace
{
struct nccl_domain {
	static constexpr char const *name{"NCCL"};
};

struct all_reduce {
	uint64_t comm;
	size_t bytes;
	int op;
};

struct init {
	uint64_t comm;
	int nranks, rank;
};

constexpr uint64_t ALL_REDUCE = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5;
constexpr uint64_t INIT = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START;
constexpr uint64_t WIDE = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 30;
constexpr uint64_t OP = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 24;

FILE *account;

uint64_t now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Writes the account of a range: its start is between a and b, and its end between c and d. */
struct told {
	const char *name;
	uint64_t a, b, c;

	told(const char *n) : name(n), a(now()), b(0), c(0)
	{
	}
	void begun()
	{
		b = now();
	}
	void ends()
	{
		c = now();
	}
	/* A mark has no end. */
	void marked()
	{
		begun();
		fprintf(account, "%s\t%d\t%llu\t%llu\t0\t0\n", name, gettid(), (unsigned long long)a,
			(unsigned long long)b);
		name = nullptr;
	}
	~told()
	{
		if (!name)
			return;
		fprintf(account, "%s\t%d\t%llu\t%llu\t%llu\t%llu\n", name, gettid(), (unsigned long long)a,
			(unsigned long long)b, (unsigned long long)c, (unsigned long long)now());
	}
};

void add_schema(const nvtxPayloadSchemaEntry_t *entries, size_t n, uint64_t id, size_t bytes)
{
	const nvtxPayloadSchemaAttr_t a = {
		NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
			NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
			NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID,
		nullptr,
		NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
		NVTX_PAYLOAD_SCHEMA_FLAG_NONE,
		entries,
		n,
		bytes,
		0,
		id,
		nullptr};

	nvtxPayloadSchemaRegister(nvtx3::domain::get<nccl_domain>(), &a);
}

/* The offset of the first member is given, and so is that of the last one; the others follow from their types. */
void add_schemas()
{
	static const nvtxPayloadEnum_t words[] = {{"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}};
	const nvtxPayloadEnumAttr_t e = {
		NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
			NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID,
		nullptr,
		words,
		3,
		sizeof(int),
		OP,
		nullptr};
	static const nvtxPayloadSchemaEntry_t all[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0, 0, nullptr, nullptr},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", nullptr, 0, 0, nullptr, nullptr},
		{0, OP, "Reduction operation", nullptr, 0, offsetof(all_reduce, op), nullptr, nullptr},
	};
	static const nvtxPayloadSchemaEntry_t of_init[] = {
		{0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", nullptr, 0, 0, nullptr, nullptr},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", nullptr, 0, 0, nullptr, nullptr},
		{0, NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", nullptr, 0, 0, nullptr, nullptr},
	};

	nvtxPayloadSchemaEntry_t wide[10] = {};

	for (auto &entry : wide) {
		entry.type = NVTX_PAYLOAD_ENTRY_TYPE_UINT32;
		entry.name = "number";
	}
	nvtxPayloadEnumRegister(nvtx3::domain::get<nccl_domain>(), &e);
	add_schema(all, 3, ALL_REDUCE, sizeof(all_reduce));
	add_schema(of_init, 3, INIT, sizeof(init));
	add_schema(wide, 10, WIDE, 10 * sizeof(uint32_t));
}

/* What it carries is only said at its end. */
void ncclCommInitRank()
{
	static const nvtx3::registered_string_in<nccl_domain> name{__func__};
	const nvtx3::event_attributes attr{name};
	const init payload = {0x1234, 4, -1};
	const nvtxPayloadData_t data = {INIT, sizeof(payload), &payload};
	told t("NCCL: ncclCommInitRank");

	nvtxDomainRangePushEx(nvtx3::domain::get<nccl_domain>(), attr.get());
	t.begun();
	t.ends();
	nvtxRangePopPayload(nvtx3::domain::get<nccl_domain>(), &data, 1);
}

void ncclAllReduce(size_t bytes)
{
	static const nvtx3::registered_string_in<nccl_domain> name{__func__};
	const all_reduce payload = {0xabcdef0123456789, bytes, 2};
	const nvtxPayloadData_t data[] = {{ALL_REDUCE, sizeof(payload), &payload}};
	nvtxEventAttributes_t e = *nvtx3::event_attributes{name}.get();
	told t("NCCL: ncclAllReduce");

	e.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	e.reserved0 = 1;
	e.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(data);
	nvtxDomainRangePushEx(nvtx3::domain::get<nccl_domain>(), &e);
	t.begun();
	t.ends();
	nvtxDomainRangePop(nvtx3::domain::get<nccl_domain>());
}

/* A mark with a payload; a range of start and end whose end has one; one that has more numbers than are kept. */
void carried()
{
	const all_reduce payload = {7, 4096, 0};
	const nvtxPayloadData_t data = {ALL_REDUCE, sizeof(payload), &payload};
	const uint32_t numbers[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	const nvtxPayloadData_t wide = {WIDE, sizeof(numbers), numbers};
	nvtxEventAttributes_t e = *nvtx3::event_attributes{"a mark", nvtx3::rgb{1, 2, 3}}.get();
	nvtxDomainHandle_t domain = nvtx3::domain::get<nccl_domain>();

	e.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	e.reserved0 = 1;
	e.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(&data);
	{
		told t("a mark");

		nvtxDomainMarkEx(domain, &e);
		t.marked();
	}
	{
		told t("NCCL: ended");
		const nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, nvtx3::event_attributes{"ended"}.get());

		t.begun();
		t.ends();
		nvtxRangeEndPayload(domain, id, &data, 1);
	}
	told t("NCCL: wide");

	nvtxDomainRangePushEx(domain, nvtx3::event_attributes{"wide"}.get());
	t.begun();
	t.ends();
	nvtxRangePopPayload(domain, &wide, 1);
}

void scoped()
{
	told t("scoped");
	{
		nvtx3::scoped_range r{"scoped", nvtx3::rgb{1, 2, 3}, nvtx3::payload{-7}, nvtx3::category{5}};

		t.begun();
		t.ends();
	}
	told f("NCCL: float");
	{
		nvtx3::scoped_range_in<nccl_domain> r{"float", nvtx3::payload{0.5f},
						      nvtx3::named_category_in<nccl_domain>{3, "three"}};

		f.begun();
		f.ends();
	}
}

void emitted(int i)
{
	char name[64];
	told t("aten::mm");

	snprintf(name, sizeof(name), "aten::mm, seq = %d, op_id = %d, sizes = [[2, 2]]", i, 2 * i);
	nvtxRangePushA(name);
	t.begun();
	t.ends();
	nvtxRangePop();
}
} // namespace

extern "C" int ranges_run(int n, int, const char *path);
extern "C" int ranges_run(int n, int, const char *path)
{
	account = fopen(path, "w");
	if (!account)
		return 0;
	nvtxRangePop(); /* that of a range which was pushed before mxbpf came */
	add_schemas();
	ncclCommInitRank();
	for (int i = 0; i < n; i++) {
		ncclAllReduce(4096 + i);
		scoped();
		carried();
		emitted(i);
	}
	fclose(account);
	return 2;
}
