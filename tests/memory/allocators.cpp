// SPDX-License-Identifier: Apache-2.0
/*
 * Allocators of a library other than PyTorch's. One plays the caching allocator of a GPU: it reserves segments, and
 * reports each block with the bytes that it has allocated and reserved, as libc10_cuda does. The other one takes the
 * place of PyTorch's allocator of CPU memory. Both keep an account.
 *
 * MODULE: name of the extension module of Python that the library is; without it the process may unload the library.
 */
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <c10/core/Allocator.h>

namespace
{

constexpr size_t SEGMENT = 1 << 21;

struct Account {
	size_t live, reserved, blocks, bytes, frees;
} device_account[2], cpu_account;

void report(void *block, int64_t bytes, Account &a, c10::Device device)
{
	a.live += bytes;
	a.blocks += bytes > 0;
	a.frees += bytes < 0;
	a.bytes += bytes > 0 ? bytes : 0;
	c10::reportMemoryUsageToProfiler(block, bytes, a.live, a.reserved, device);
}

struct Header {
	size_t bytes;
	size_t pad[7];
};

void *take(size_t bytes, Account &a, c10::Device device)
{
	auto *h = static_cast<Header *>(aligned_alloc(64, (sizeof(Header) + bytes + 63) / 64 * 64));

	h->bytes = bytes;
	while (device.type() != c10::kCPU && a.reserved < a.live + bytes)
		a.reserved += SEGMENT;
	report(h + 1, bytes, a, device);
	return h + 1;
}

void give(void *block, Account &a, c10::Device device)
{
	auto *h = static_cast<Header *>(block) - 1;

	report(block, -static_cast<int64_t>(h->bytes), a, device);
	free(h);
}

void give_cpu(void *block)
{
	if (block)
		give(block, cpu_account, c10::Device(c10::kCPU));
}

struct Registered final : c10::Allocator {
	c10::DataPtr allocate(size_t bytes) override
	{
		void *block = bytes ? take(bytes, cpu_account, c10::Device(c10::kCPU)) : nullptr;

		return {block, block, &give_cpu, c10::Device(c10::kCPU)};
	}
	c10::DeleterFnPtr raw_deleter() const override
	{
		return &give_cpu;
	}
	void copy_data(void *to, const void *from, std::size_t bytes) const override
	{
		std::memcpy(to, from, bytes);
	}
} registered;

} // namespace

extern "C" {

void *device_take(int ordinal, size_t bytes)
{
	return take(bytes, device_account[ordinal], c10::Device(c10::kCUDA, ordinal));
}

void device_give(int ordinal, void *block)
{
	give(block, device_account[ordinal], c10::Device(c10::kCUDA, ordinal));
}

void register_cpu(void)
{
	c10::SetAllocator(c10::kCPU, &registered, 1);
}

/* Copies live, reserved, blocks, bytes and frees; ordinal -1: of the CPU. */
void account_of(int ordinal, size_t to[5])
{
	std::memcpy(to, ordinal < 0 ? &cpu_account : &device_account[ordinal], sizeof(Account));
}

#ifdef MODULE
#define NAMED(name)  PyInit_##name
#define NAMED_(name) NAMED(name)
void *NAMED_(MODULE)(void)
{
	return nullptr;
}
#endif
}
