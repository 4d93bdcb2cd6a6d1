// SPDX-License-Identifier: Apache-2.0
/*
 * A toy MXNet: the functions that mxbpf probes, with MXNet 1.9.1's symbols, structures and build-id, and a small
 * engine behind them that counts its calls. mxbpf must count exactly the same calls. It needs neither Python nor a
 * download.
 *
 * Operators run on two worker threads. Every fifth operator ends asynchronously on another thread; every seventh one
 * throws an exception, which WaitForVar throws again. Every eleventh call of MXImperativeInvoke throws an exception
 * itself, after it has made another API call. Arrays on the GPU come from a pool of 64 MiB, which throws when it has no
 * more.
 */
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#define PROBED __attribute__((noinline, noclone, visibility("default")))
#define C_API  extern "C" __attribute__((visibility("default")))

// ---- counts

static std::mutex counts_lock;
static std::map<std::string, std::map<std::string, uint64_t>> counts;

static void count(const char *table, const std::string &name, uint64_t n = 1)
{
	std::lock_guard<std::mutex> hold(counts_lock);
	counts[table][name] += n;
}

// ---- structures, as far as mxbpf reads them

namespace dmlc
{
struct Error : std::runtime_error {
	using std::runtime_error::runtime_error;
};
} // namespace dmlc

namespace mxnet
{
struct Context {
	int32_t dev_type = 1, dev_id = 0;
};

struct RunContext { // more than 16 bytes: passed on the stack
	Context ctx;
	void *stream = nullptr, *aux_stream = nullptr;
	bool is_bulk = false;
};

struct Storage {
	struct Handle { // more than 16 bytes: passed on the stack
		void *dptr = nullptr;
		size_t size = 0;
		Context ctx;
		int shared_pid = -1, shared_id = -1;
	};
};
static_assert(offsetof(Storage::Handle, size) == 8 && offsetof(Storage::Handle, ctx) == 16);

struct StorageImpl {
	PROBED void Alloc(Storage::Handle *handle);
	PROBED void Free(Storage::Handle handle);
	PROBED void DirectFree(Storage::Handle handle);
};

struct Engine {
};

namespace storage
{
/* The second word is what the pool has taken from the GPU. */
struct GPUPooledStorageManager {
	void *vtable = nullptr;
	size_t used_memory_ = 0;
	PROBED void Alloc(Storage::Handle *handle);
};
} // namespace storage

namespace engine
{
struct Var {
	std::mutex lock;
	std::condition_variable changed;
	int pending = 0;
	std::exception_ptr error;
};

struct Opr {
	Var *var;
	bool async;
	std::function<void()> work;
};

struct ThreadedOpr : Opr {
	char pad[88 - sizeof(Opr)];
	std::string opr_name;
};

struct OprBlock {
	void *wait = nullptr;
	ThreadedOpr *opr = nullptr;
	Context ctx;
};
static_assert(offsetof(OprBlock, opr) == 8 && offsetof(OprBlock, ctx) == 16);

struct ThreadedEngine : Engine {
	PROBED void ExecuteOprBlock(RunContext run_ctx, OprBlock *block);
	PROBED static void OnCompleteStatic(Engine *engine, void *block, const dmlc::Error *error);
	PROBED void Push(Opr *opr, Context ctx, int priority, bool profiling);
	PROBED void WaitForVar(Var *var);
	PROBED void WaitForAll();
};
} // namespace engine

PROBED void on_enter_api(const char *function);
PROBED void on_exit_api();

// ---- storage

#define GPU	 2
#define GPU_POOL (64u << 20)

namespace storage
{
static GPUPooledStorageManager the_pool;

void GPUPooledStorageManager::Alloc(Storage::Handle *handle)
{
	if (handle->size > GPU_POOL - used_memory_)
		throw dmlc::Error("cudaMalloc retry failed: out of memory");
	used_memory_ += handle->size;
	handle->dptr = ::operator new(handle->size);
}
} // namespace storage

void StorageImpl::Alloc(Storage::Handle *handle)
{
	if (handle->ctx.dev_type == GPU)
		storage::the_pool.Alloc(handle);
	else
		handle->dptr = ::operator new(handle->size);
	count("Device Storage", "allocs");
	count("Device Storage", "alloc_bytes", handle->size);
}

static void give_back(const Storage::Handle &handle)
{
	if (!handle.dptr)
		return;
	::operator delete(handle.dptr);
	count("Device Storage", "frees");
	count("Device Storage", "free_bytes", handle.size);
}

void StorageImpl::Free(Storage::Handle handle)
{
	give_back(handle);
}

void StorageImpl::DirectFree(Storage::Handle handle)
{
	give_back(handle);
	asm volatile("" ::"i"(1)); // different code, so that the linker cannot fold it with Free
}

// ---- engine

namespace engine
{
/* Blocks on their way to threads. It is never closed: the process exits while its threads wait here. */
struct Queue {
	std::mutex lock;
	std::condition_variable more;
	std::deque<OprBlock *> blocks;

	void put(OprBlock *block)
	{
		std::lock_guard<std::mutex> hold(lock);
		blocks.push_back(block);
		more.notify_one();
	}
	OprBlock *take()
	{
		std::unique_lock<std::mutex> hold(lock);
		more.wait(hold, [this] { return !blocks.empty(); });
		OprBlock *block = blocks.front();
		blocks.pop_front();
		return block;
	}
};

static ThreadedEngine the_engine;
static StorageImpl the_storage;
static Queue &to_run = *new Queue, &to_end = *new Queue; // never destroyed: threads wait in them at the end
static Var everything;

static void change_pending(Var *var, int by, std::exception_ptr error = nullptr)
{
	std::lock_guard<std::mutex> hold(var->lock);
	var->pending += by;
	if (error)
		var->error = error;
	var->changed.notify_all();
}

static void wait_until_done(Var *var)
{
	std::unique_lock<std::mutex> hold(var->lock);
	var->changed.wait(hold, [var] { return !var->pending; });
}

void ThreadedEngine::OnCompleteStatic(Engine *, void *opr_block, const dmlc::Error *error)
{
	OprBlock *block = static_cast<OprBlock *>(opr_block);
	Var *var = block->opr->var;

	count("operator", block->opr->opr_name);
	delete block->opr;
	delete block;
	change_pending(var, -1, error ? std::make_exception_ptr(*error) : nullptr);
	change_pending(&everything, -1);
}

void ThreadedEngine::ExecuteOprBlock(RunContext, OprBlock *block)
{
	try {
		block->opr->work();
	} catch (const dmlc::Error &e) {
		OnCompleteStatic(this, block, &e);
		return;
	}
	if (block->opr->async)
		to_end.put(block);
	else
		OnCompleteStatic(this, block, nullptr);
}

void ThreadedEngine::Push(Opr *opr, Context ctx, int, bool)
{
	OprBlock *block = new OprBlock;

	block->opr = static_cast<ThreadedOpr *>(opr);
	block->ctx = ctx;
	change_pending(opr->var, 1);
	change_pending(&everything, 1);
	to_run.put(block);
}

void ThreadedEngine::WaitForVar(Var *var)
{
	count("Engine wait", "WaitForVar");
	wait_until_done(var);
	if (std::exception_ptr error = std::exchange(var->error, nullptr))
		std::rethrow_exception(error);
}

void ThreadedEngine::WaitForAll()
{
	count("Engine wait", "WaitForAll");
	wait_until_done(&everything);
}

static void run_operators()
{
	for (;;)
		the_engine.ExecuteOprBlock(RunContext(), to_run.take());
}

static void end_operators()
{
	for (;;)
		ThreadedEngine::OnCompleteStatic(&the_engine, to_end.take(), nullptr);
}

static void start_threads()
{
	static std::once_flag once;

	std::call_once(once, [] {
		std::thread(run_operators).detach();
		std::thread(run_operators).detach();
		std::thread(end_operators).detach();
	});
}
} // namespace engine

// ---- C API

void on_enter_api(const char *function)
{
	count("MXNET_C_API", function);
}

void on_exit_api()
{
	asm volatile("" ::: "memory");
}
} // namespace mxnet

using namespace mxnet;
using namespace mxnet::engine;

#define API_BEGIN()                                                                                                    \
	on_enter_api(__FUNCTION__);                                                                                    \
	try {
#define API_END()                                                                                                      \
	}                                                                                                              \
	catch (const std::exception &)                                                                                 \
	{                                                                                                              \
		on_exit_api();                                                                                         \
		return -1;                                                                                             \
	}                                                                                                              \
	on_exit_api();                                                                                                 \
	return 0;

struct Array {
	Var var;
	Storage::Handle data;
};

C_API int MXNDArrayCreate(size_t bytes, Array **out)
{
	API_BEGIN();
	start_threads();
	*out = new Array;
	(*out)->data.size = bytes;
	the_storage.Alloc(&(*out)->data);
	API_END();
}

C_API int MXNDArrayCreateOnGPU(size_t bytes, Array **out)
{
	API_BEGIN();
	*out = new Array;
	(*out)->data.size = bytes;
	(*out)->data.ctx.dev_type = GPU;
	the_storage.Alloc(&(*out)->data);
	API_END();
}

C_API int MXNDArrayFree(Array *array)
{
	API_BEGIN();
	if (array->data.size % 2)
		the_storage.DirectFree(array->data);
	else
		the_storage.Free(array->data);
	the_storage.Free(Storage::Handle()); // empty handle: has no effect
	delete array;
	API_END();
}

/* An operator named "gated" locks and unlocks it. */
extern "C" __attribute__((visibility("default"))) pthread_mutex_t toy_gate;
pthread_mutex_t toy_gate = PTHREAD_MUTEX_INITIALIZER;

static void pass_gate()
{
	pthread_mutex_lock(&toy_gate);
	pthread_mutex_unlock(&toy_gate);
}

/* Begins with the address of its name, like nnvm::Op. */
struct Op {
	const char *name;
};

C_API int MXImperativeInvoke(const Op *op, unsigned serial, Array *array)
{
	API_BEGIN();
	Array *scratch;

	MXNDArrayCreate(64 + serial % 3, &scratch); // an API call nested in an API call
	MXNDArrayFree(scratch);
	if (serial % 11 == 10)
		throw dmlc::Error("shapes do not fit");
	ThreadedOpr *opr = new ThreadedOpr;
	opr->var = &array->var;
	opr->async = serial % 5 == 4;
	opr->opr_name = op->name;
	opr->work = [serial, gated = opr->opr_name == "gated"] {
		if (gated)
			pass_gate();
		if (serial % 7 == 6)
			throw dmlc::Error("a negative scale");
	};
	the_engine.Push(opr, Context(), 0, false);
	API_END();
}

C_API int MXNDArrayWaitToRead(Array *array)
{
	API_BEGIN();
	the_engine.WaitForVar(&array->var);
	API_END();
}

C_API int MXNDArrayWaitAll()
{
	API_BEGIN();
	the_engine.WaitForAll();
	API_END();
}

/* Prints tables with mxbpf's names: {"MXNET_C_API": {"MXNDArrayCreate": 12, ...}, ...} in one line. */
C_API void toy_print_counts(FILE *f)
{
	std::lock_guard<std::mutex> hold(counts_lock);
	const char *comma = "{";

	for (auto &table : counts) {
		fprintf(f, "%s\"%s\": ", comma, table.first.c_str());
		comma = "{";
		for (auto &row : table.second) {
			fprintf(f, "%s\"%s\": %lu", comma, row.first.c_str(), row.second);
			comma = ", ";
		}
		fprintf(f, "}");
	}
	fprintf(f, "}\n");
}
