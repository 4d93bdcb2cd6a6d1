// SPDX-License-Identifier: Apache-2.0
// Functions with every kind of way out, for test_cut.c: compiled at several levels, run instruction by instruction.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#define OPAQUE extern "C" __attribute__((noipa, visibility("default")))
#define HIDDEN extern "C" __attribute__((noipa, visibility("hidden")))

volatile int sink;

// What counts as work: none of it may run between a function's cut and its return.
HIDDEN int work(int x)
{
	sink += x;
	return x * 3 + 1;
}
HIDDEN int work_or_throw(int x)
{
	sink += x;
	if (x % 7 == 3)
		throw std::runtime_error("three");
	if (x % 7 == 5)
		throw x;
	return x + 1;
}
HIDDEN int work_nothrow(int x) noexcept
{
	sink -= x;
	return x;
}
// What may follow: it frees and never throws.
HIDDEN void release(int x) noexcept
{
	sink ^= x;
}
HIDDEN bool ready(int *x)
{
	return --*x <= 0;
}

struct guard {
	int x;
	explicit guard(int v) : x(v)
	{
		sink++;
	}
	__attribute__((noinline)) ~guard()
	{
		release(x);
	}
};

OPAQUE int f_simple(int x)
{
	guard g(x);
	return work_or_throw(x);
}
OPAQUE int f_early(int x)
{
	if (x < 2)
		return -1;
	std::string s(std::size_t(x) * 8, 'a');
	return work_or_throw(int(s.size()) + x);
}
OPAQUE int f_early_twice(int x)
{
	if (x == 0)
		return 7;
	int y = work_or_throw(x);
	if (y & 1)
		return y;
	guard g(y);
	return work(y);
}
OPAQUE int f_loop_end(int x)
{
	int y = 0;
	for (int i = 0; i < x; i++)
		y += work_or_throw(i);
	return y;
}
OPAQUE int f_loop_only(int x)
{
	int y = 0;
	do
		y += work(x);
	while (--x > 0);
	return y;
}
OPAQUE int f_catch(int x)
{
	try {
		x = work_or_throw(x);
	} catch (const std::exception &e) {
		return work(int(std::strlen(e.what())));
	} catch (int) {
		return -1;
	}
	return x;
}
OPAQUE int f_rethrow(int x)
{
	guard g(x);
	try {
		return work_or_throw(x);
	} catch (...) {
		work(2);
		if (x < 10)
			throw;
	}
	return 0;
}
OPAQUE int f_catch_loop(int x)
{
	int bad = 0;
	for (int i = 0; i < x; i++) {
		try {
			guard g(i);
			work_or_throw(i);
		} catch (const std::exception &) {
			bad++;
		} catch (int) {
			if (i > 10)
				throw;
		}
	}
	return bad;
}
OPAQUE int f_cleanup(int x)
{
	std::vector<std::string> v;
	for (int i = 0; i < x % 5; i++)
		v.push_back(std::string(40, char('a' + i)));
	work_or_throw(x);
	return int(v.size());
}
OPAQUE int f_noreturn(int x)
{
	if (x > 1000)
		std::abort();
	if (x > 500)
		throw std::logic_error("never here");
	std::string s(32, 'b');
	return work(int(s.size()) + x);
}
OPAQUE int f_switch(int x)
{
	guard g(x);
	switch (x) {
	case 0:
		return work(1);
	case 1:
		return work_or_throw(10);
	case 2:
		work(2);
		break;
	case 3:
		return 44;
	case 4:
		return work_or_throw(x - 1);
	case 6:
		work(6);
		work(7);
		break;
	case 7:
		return -work(8);
	case 8:
		return work(x) ^ 5;
	case 9:
		throw x;
	default:
		return work(x) + 1;
	}
	return work_or_throw(x);
}
// The last case has an end of its own: overlooked, its return would be missed.
OPAQUE int f_switch_ends(int x)
{
	switch (x) {
	case 0:
		work(1);
		break;
	case 1:
		work(7);
		work(3);
		break;
	case 2:
		sink = 4;
		break;
	case 3:
		work(x + 9);
		sink++;
		break;
	case 4:
		sink = 77;
		work(4);
		break;
	case 5:
		work(2);
		work(x);
		work(5);
		break;
	case 6: {
		std::unique_ptr<char[]> p(new char[99]);
		work_or_throw(1);
		return 6;
	}
	default:
		work(3);
		break;
	}
	guard g(x);
	return work_or_throw(4);
}
OPAQUE int f_switch_loop(int x)
{
	int y = 0;
	for (int i = 0; i < x; i++) {
		switch ((i * 5 + x) % 11) {
		case 0:
			y += work(1);
			break;
		case 1:
			y ^= work(3);
			break;
		case 2:
			y -= 7;
			break;
		case 3:
			y += work_or_throw(i);
			break;
		case 4:
			return y;
		case 5:
			y *= work(2);
			break;
		case 6:
			y += 100;
			continue;
		case 7:
			y = work(y);
			break;
		default:
			y++;
			break;
		}
		sink += y;
	}
	release(y);
	return y;
}
OPAQUE int f_cold(int x)
{
	if (__builtin_expect(x % 7 == 3, 0)) {
		std::string message = "value ";
		message += std::to_string(x);
		if (x > 5)
			return work(int(message.size()));
		throw std::runtime_error(message);
	}
	guard g(x);
	return work(x);
}
static __attribute__((noinline, noclone)) int tail_callee(int x)
{
	guard g(x);
	if (x == 4)
		return 9;
	return work_or_throw(x);
}
OPAQUE int f_tail(int x)
{
	sink = x;
	return tail_callee(x + 1);
}
OPAQUE int f_tail_either(int x)
{
	if (x & 1)
		return tail_callee(x);
	work(x);
	return x > 6 ? work_or_throw(x) : tail_callee(x + 2);
}
OPAQUE int f_last_call(int x)
{
	std::string *keep = nullptr;
	int y[4] = {x, x, x, x};
	__asm__ volatile("" : : "r"(keep), "r"(y) : "memory");
	return tail_callee(y[x & 3] + 1) + 1;
}
OPAQUE void f_tail_free(int x)
{
	void *p = std::malloc(std::size_t(x) + 8);
	__asm__ volatile("" : "+r"(p) : : "memory");
	work(x);
	std::free(p);
}
static int (*volatile pointer)(int) = work_or_throw;
OPAQUE int f_indirect_tail(int x)
{
	sink = x;
	return pointer(x);
}
OPAQUE int f_indirect_last(int x)
{
	guard g(x);
	return pointer(x);
}
OPAQUE int f_recursive(int x)
{
	if (x <= 0)
		return 1;
	guard g(x);
	int y = f_recursive(x - 1);
	if (x == 6)
		y += f_recursive(x - 3);
	return x > 12 ? work_or_throw(x) + y : work(x) + y;
}
OPAQUE int f_self_tail(int x)
{
	sink += x;
	return x <= 0 ? work(x) : f_self_tail(x - 1);
}
__attribute__((noipa, visibility("default"))) std::string f_sret(int x)
{
	std::string s(std::size_t(x) * 5, 'c');
	work_or_throw(x);
	s += "tail";
	return s;
}
OPAQUE int call_f_sret(int x)
{
	return int(f_sret(x).size());
}
// Waits: what follows the wait is not the end of the work before it.
OPAQUE int f_wait(int x)
{
	std::mutex m;
	std::unique_lock<std::mutex> lock(m);
	int left = x;
	while (!ready(&left)) {
		lock.unlock();
		work(left);
		lock.lock();
	}
	return left;
}
OPAQUE int f_noexcept_last(int x) noexcept
{
	sink = x;
	work_nothrow(x);
	return work_nothrow(x + 1) + work(x);
}
OPAQUE void f_noexcept_void(int x) noexcept
{
	int y[8] = {x};
	__asm__ volatile("" : : "r"(y) : "memory");
	work_nothrow(y[0]);
	work(y[1]);
}
OPAQUE int f_compute_last(int x)
{
	static volatile int cells[64];
	work_or_throw(x);
	for (int i = 0; i < 64; i++)
		cells[i] = cells[i] * x + i;
	return x;
}
OPAQUE int f_shared(int x)
{
	std::shared_ptr<guard> p = x % 2 ? std::make_shared<guard>(x) : nullptr;
	std::shared_ptr<guard> q = p;
	int y = work_or_throw(x);
	return p ? y + p->x : y;
}
OPAQUE int f_lock(int x)
{
	static std::mutex m;
	std::lock_guard<std::mutex> lock(m);
	return work_or_throw(x);
}
OPAQUE int f_alloca(int x)
{
	char *p = static_cast<char *>(__builtin_alloca(std::size_t(x) * 16 + 16));
	std::memset(p, x, std::size_t(x) * 16 + 16);
	if (work_or_throw(x) > 8)
		return p[x];
	guard g(x);
	return work(p[0]);
}
OPAQUE int f_realigned(int x)
{
	alignas(128) char p[256];
	std::memset(p, x, sizeof(p));
	__asm__ volatile("" : : "r"(p) : "memory");
	guard g(p[3]);
	return work_or_throw(x);
}
OPAQUE int f_two_ends(int x)
{
	guard outer(x);
	if (x & 1) {
		std::string s(50, 'x');
		return work_or_throw(int(s.size()) + x);
	}
	std::vector<int> v(std::size_t(x) + 1, x);
	for (int i : v)
		if (i == 8)
			return work(i);
	return work_or_throw(v[0]);
}
OPAQUE int f_after_catch(int x)
{
	int y = 0;
	try {
		guard g(x);
		y = work_or_throw(x);
	} catch (int v) {
		y = v;
	}
	work(y);
	if (y > 9)
		work_or_throw(y);
	return y;
}
OPAQUE int f_goto(int x)
{
	int y = 0;
again:
	y += work(x);
	if (y < 20 && x > 0)
		goto again;
	if (x == 2)
		return y;
	while (y > 30)
		y -= work(9);
	return work_or_throw(y);
}
OPAQUE int f_leaf(int x)
{
	return x > 3 ? x * 7 : x - 2;
}
OPAQUE int f_straight(int x)
{
	return work(x) + 1;
}

static int (*volatile nothrow_pointer)(int) noexcept = work_nothrow;
OPAQUE int f_noexcept_pointer(int x)
{
	guard g(x);
	work_or_throw(x);
	return nothrow_pointer(x);
}

// Runs one; -1: it threw.
OPAQUE int run(int (*f)(int), int x)
{
	try {
		f(x);
		return 0;
	} catch (...) {
		return -1;
	}
}
