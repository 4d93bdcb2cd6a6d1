// SPDX-License-Identifier: Apache-2.0
/*
 * Plays the caching allocator of libc10_cuda on the mock of a GPU. As PyTorch's it rounds blocks to 512 bytes, takes
 * segments by cudaMalloc() and keeps them, reports each block to the profiler with the bytes that it has allocated and
 * reserved, and when the device has no memory gives unused segments back, tries again, and reports that it gives up.
 */
#include <cstdint>
#include <map>
#include <vector>

#include <c10/core/Allocator.h>

extern "C" int cudaMalloc(void **p, size_t bytes);
extern "C" int cudaFree(void *p);
extern "C" int cudaMallocAsync(void **p, size_t bytes, void *stream);
extern "C" int cudaFreeAsync(void *p, void *stream);

namespace
{

struct Segment {
	char *base;
	size_t bytes, used;
	std::map<char *, size_t> holes;
};

struct Device {
	std::vector<Segment> segments;
	std::map<char *, size_t> blocks;
	size_t allocated, reserved, largest_unused, retries, failures;
	size_t mallocs, malloc_bytes, frees, free_bytes; /* calls of CUDA, also those that failed */
} devices[2];

c10::Device number(int ordinal)
{
	return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(ordinal));
}

size_t rounded(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

size_t segment_bytes(size_t bytes)
{
	return bytes <= 1 << 20 ? 2 << 20 : bytes < 10 << 20 ? 20 << 20 : rounded(bytes, 2 << 20);
}

/* The smallest hole that is large enough, as PyTorch chooses. */
char *from_holes(Device &d, size_t bytes)
{
	Segment *of = nullptr;
	std::map<char *, size_t>::iterator best;

	for (auto &s : d.segments)
		for (auto h = s.holes.begin(); h != s.holes.end(); ++h)
			if (h->second >= bytes && (!of || h->second < best->second)) {
				of = &s;
				best = h;
			}
	if (!of)
		return nullptr;
	char *at = best->first;
	const size_t left = best->second - bytes;
	of->holes.erase(best);
	if (left)
		of->holes[at + bytes] = left;
	of->used += bytes;
	return at;
}

bool grow(Device &d, size_t bytes)
{
	const size_t n = segment_bytes(bytes);
	void *p = nullptr;

	d.mallocs++;
	if (cudaMalloc(&p, n))
		return false;
	d.malloc_bytes += n;
	d.segments.push_back({static_cast<char *>(p), n, 0, {{static_cast<char *>(p), n}}});
	d.reserved += n;
	return true;
}

void release_unused(Device &d)
{
	std::vector<Segment> kept;

	for (auto &s : d.segments) {
		if (s.used) {
			kept.push_back(s);
			continue;
		}
		cudaFree(s.base);
		d.frees++;
		d.free_bytes += s.bytes;
		d.reserved -= s.bytes;
	}
	d.segments = kept;
}

void note(Device &d)
{
	if (d.reserved - d.allocated > d.largest_unused)
		d.largest_unused = d.reserved - d.allocated;
}

} // namespace

extern "C" {

/* Returns 0 if the device has no memory. */
void *caching_take(int ordinal, size_t wanted)
{
	Device &d = devices[ordinal];
	const size_t bytes = rounded(wanted ? wanted : 1, 512);
	char *at = from_holes(d, bytes);

	if (!at && !grow(d, bytes)) {
		d.retries++;
		release_unused(d);
		if (!grow(d, bytes)) {
			d.failures++;
			c10::reportOutOfMemoryToProfiler(bytes, d.allocated, d.reserved, number(ordinal));
			return nullptr;
		}
	}
	at = at ? at : from_holes(d, bytes);
	d.blocks[at] = bytes;
	d.allocated += bytes;
	note(d);
	c10::reportMemoryUsageToProfiler(at, bytes, d.allocated, d.reserved, number(ordinal));
	return at;
}

void caching_give(int ordinal, void *block)
{
	Device &d = devices[ordinal];
	char *at = static_cast<char *>(block);
	const size_t bytes = d.blocks[at];

	d.blocks.erase(at);
	d.allocated -= bytes;
	for (auto &s : d.segments) {
		if (at < s.base || at >= s.base + s.bytes)
			continue;
		s.used -= bytes;
		auto h = s.holes.emplace(at, bytes).first;
		auto next = std::next(h);
		if (next != s.holes.end() && h->first + h->second == next->first) {
			h->second += next->second;
			s.holes.erase(next);
		}
		if (h != s.holes.begin() && std::prev(h)->first + std::prev(h)->second == h->first) {
			std::prev(h)->second += h->second;
			s.holes.erase(h);
		}
	}
	note(d);
	c10::reportMemoryUsageToProfiler(at, -static_cast<int64_t>(bytes), d.allocated, d.reserved, number(ordinal));
}

/* Memory that is not the allocator's. */
void *outside_take(int ordinal, size_t bytes)
{
	Device &d = devices[ordinal];
	void *p = nullptr;

	d.mallocs++;
	d.malloc_bytes += bytes;
	return cudaMalloc(&p, bytes) ? nullptr : p;
}

/* Copies the ten numbers of the account. */
void caching_account(int ordinal, size_t to[10])
{
	const Device &d = devices[ordinal];

	to[0] = d.allocated;
	to[1] = d.reserved;
	to[2] = d.largest_unused;
	to[3] = d.retries;
	to[4] = d.failures;
	to[5] = d.mallocs;
	to[6] = d.malloc_bytes;
	to[7] = d.frees;
	to[8] = d.free_bytes;
	to[9] = 0;
	for (auto &s : d.segments)
		for (auto &h : s.holes)
			to[9] = h.second > to[9] ? h.second : to[9];
}

/* Counts the most that is reserved and not allocated, and the calls of CUDA, anew. */
void caching_reset(int ordinal)
{
	Device &d = devices[ordinal];

	d.largest_unused = d.mallocs = d.malloc_bytes = d.frees = d.free_bytes = 0;
}

/* Memory of CUDA's own pool. */
void *pool_take(size_t bytes)
{
	void *p = nullptr;

	return cudaMallocAsync(&p, bytes, nullptr) ? nullptr : p;
}

void pool_give(void *p)
{
	cudaFreeAsync(p, nullptr);
}

/* Python never unloads an extension module, so the agent may replace entries of its import table. */
void *PyInit_gpumem(void)
{
	return nullptr;
}
}
