// SPDX-License-Identifier: Apache-2.0
/* Tests what is kept of the driver's account of a GPU's memory, and which GPU a device of the runtime is. */
#include "feature/devmem/devmem.h"

#include "mxbpf_track.h"
#include "records/kinds.h"
#include "unit.h"

#define MIB  (1ull << 20)
#define CUDA MXBPF_DEVICE(1, 0)

static struct mdl_device devices[] = {{.type = 1, .name = "cuda", .numbered = true},
				      {.type = 2, .name = "cpu", .numbered = true}};
static const struct mdl_session session = {.devices = devices, .ndevices = 2};

static void tell(struct mdl *m, uint32_t tgid, uint32_t bus, uint64_t ns, uint64_t used, uint64_t own, uint64_t others)
{
	const struct mxbpf_gpu_used r = {
		.h = {.kind = MXBPF_GPU_USED, .size = sizeof(r), .tgid = tgid, .ts_ns = ns},
		.total_bytes = 100 * MIB,
		.used_bytes = used * MIB,
		.own_bytes = own * MIB,
		.others_bytes = others * MIB,
		.others = others != 0,
		.pci_bus = bus,
	};

	CHECK(!mdl_fold(m, &r.h));
}

static void name_device(struct mdl *m, uint32_t tgid, uint32_t ordinal, uint32_t bus)
{
	const struct mxbpf_gpu_device d = {
		.h = {.kind = MXBPF_GPU_DEVICE, .size = sizeof(d), .tgid = tgid}, .device = ordinal, .pci_bus = bus};

	CHECK(!mdl_fold(m, &d.h));
}

static uint64_t others_at(const struct mdl *m, uint64_t ns)
{
	const struct mxbpf_gpu_used *r = devmem_at(m, &session, 7, CUDA, ns);

	return r ? r->others_bytes / MIB : 1000;
}

static void check_times(const struct mdl *m)
{
	const struct devmem_row *of = devmem_of(m, 7, 0);

	CHECK(of && of->last.h.ts_ns == 40 && of->last.used_bytes == 30 * MIB);
	CHECK(of->most.h.ts_ns == 20 && of->most.used_bytes == 50 * MIB);
	CHECK(others_at(m, 5) == 10 && others_at(m, 19) == 10 && others_at(m, 20) == 30 && others_at(m, 39) == 30 &&
	      others_at(m, 100) == 11);
}

static void test_times(void)
{
	FREED(model_freed) struct mdl *again = mdl_new(), *m = mdl_new();
	struct mdl *sum;
	FREED(buf_fini) struct buf recs = {0};
	const struct mxbpf_rec *r;
	size_t pos = 0;

	TEST("the last reading, the one with the most, and the last one before a moment are found, from a recording "
	     "too")
	{
		tell(m, 7, 1, 10, 29, 19, 10);
		tell(m, 7, 1, 20, 50, 20, 30);
		tell(m, 7, 1, 30, 50, 20, 30);
		tell(m, 7, 1, 40, 30, 19, 11);
		check_times(m);
		CHECK(!mdl_emit(m, &recs));
		while ((r = kind_next(recs.data, recs.len, &pos)))
			CHECK(!mdl_fold(again, r));
		check_times(again);
		sum = mdl_sum(again);
		check_times(sum);
		CHECK(devmem_of(sum, 0, 0) == devmem_of(sum, 7, 0));
		mdl_free(sum);
	}
}

static void test_which(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();

	TEST("the GPU of a device is the only one of its process, else the one at its place on the bus, else not known")
	{
		CHECK(!devmem_of(m, 7, 0));
		tell(m, 0, 1, 10, 20, 0, 20);
		CHECK(devmem_of(m, 7, 0)->last.pci_bus == 1);
		tell(m, 0, 2, 10, 20, 0, 20);
		CHECK(!devmem_of(m, 7, 0));
		tell(m, 7, 2, 10, 20, 15, 5);
		CHECK(devmem_of(m, 7, 0)->last.own_bytes == 15 * MIB);
		CHECK(!devmem_of(m, 8, 0));
		tell(m, 7, 1, 10, 20, 16, 5);
		CHECK(!devmem_of(m, 7, 0));
		name_device(m, 7, 0, 1);
		name_device(m, 7, 1, 2);
		name_device(m, 8, 0, 2);
		CHECK(devmem_of(m, 7, 0)->last.own_bytes == 16 * MIB && devmem_of(m, 7, 1)->last.own_bytes == 15 * MIB);
		CHECK(devmem_of(m, 8, 0)->last.pci_bus == 2 && !devmem_of(m, 8, 0)->last.h.tgid);
		CHECK(!devmem_at(m, &session, 7, MXBPF_DEVICE(2, 0), 10)); /* the CPU */
	}
}

int main(void)
{
	test_times();
	test_which();
	UNIT_MAIN_END;
}
