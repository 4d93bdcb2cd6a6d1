// SPDX-License-Identifier: Apache-2.0
/*
 * MXNet 1.x and 2.0. Symbols, arguments and offsets were verified on the running wheels in builds[]. The offsets are
 * the same in all of them: OprBlock.opr +8, .ctx +16; ThreadedOpr.opr_name +88; Storage::Handle.size +8, .ctx +16.
 */
#include "adapter/adapter.h"
#include "adapter/mxnet_names.h"
#include "mxbpf_kv.h"

#include <stddef.h>

#include "mxbpf_step.h"

#define ARG1 .base = MXBPF_BASE_ARG1
#define ARG2 .base = MXBPF_BASE_ARG2
#define ARG3 .base = MXBPF_BASE_ARG3
#define ARG5 .base = MXBPF_BASE_ARG5
/*
 * An annotation object has the address of a vtable, a name of 128 bytes (a span also has one of its table) and the
 * address of its domain. A domain begins the same way. The layout is the same in all wheels up to 2.0.0b1.
 */
#define MARK(a)	  .name = {.off = {8}}, .link = {ARG1, AT1(a)}
#define STACK	  .base = MXBPF_BASE_STACK
#define AT1(a)	  .nderef = 1, .off = {a}
#define AT2(a, b) .nderef = 2, .off = {a, b}
/* Virtual tables. Their slots are the same in 1.5 to 1.9. */
#define STORAGE	 .class_name = "N5mxnet11StorageImplE", .slot
#define ENGINE	 .class_name = "N5mxnet6engine23ThreadedEnginePerDeviceE", .slot
#define POOLED	 .class_name = "N5mxnet6engine20ThreadedEnginePooledE", .slot
#define NAIVE	 .class_name = "N5mxnet6engine11NaiveEngineE", .slot
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define POOL(called, symbol, taken_off)                                                                                \
	{                                                                                                              \
		.name = called, .group = PROBE_POOL, .optional = true, .symbols = {symbol},                            \
		.row = {.action = MXBPF_ACT_POOL,                                                                      \
			.key = {ARG2},                                                                                 \
			.link = {.base = MXBPF_BASE_ARG1, .off = {taken_off}}},                                        \
	}
#define OUTPUTS(called, symbol)                                                                                        \
	{                                                                                                              \
		.name = called, .group = PROBE_OUTPUT, .optional = true, .symbols = {symbol},                          \
		.row = {.action = MXBPF_ACT_OUTPUT, .key = {STACK, AT1(24)}},                                          \
	}

/* KVStore calls that send, receive, or do both. */
static const struct adp_member kv_send[] = {{"MXKVStoreInit", "init"}, {"MXKVStorePush", "push"}, {NULL, NULL}};
static const struct adp_member kv_send_named[] = {
	{"MXKVStoreInitEx", "init"}, {"MXKVStorePushEx", "push"}, {NULL, NULL}};
static const struct adp_member kv_receive[] = {{"MXKVStorePull", "pull"},
					       {"MXKVStorePullWithSparse", "pull"},
					       {"MXKVStorePullRowSparse", "row_sparse_pull"},
					       {NULL, NULL}};
static const struct adp_member kv_receive_named[] = {{"MXKVStorePullEx", "pull"},
						     {"MXKVStorePullWithSparseEx", "pull"},
						     {"MXKVStorePullRowSparseEx", "row_sparse_pull"},
						     {NULL, NULL}};
static const struct adp_member kv_both[] = {
	{"MXKVStorePushPull", "pushpull"}, {"MXKVStoreBroadcast", "broadcast"}, {NULL, NULL}};
static const struct adp_member kv_both_named[] = {
	{"MXKVStorePushPullEx", "pushpull"}, {"MXKVStoreBroadcastEx", "broadcast"}, {NULL, NULL}};
static const struct adp_member kv_barrier[] = {{"MXKVStoreBarrier", "barrier"}, {NULL, NULL}};
#define DATA_HANDLE(name)                                                                                              \
	"_ZN5mxnet7kvstore17KVStoreDistServer" name                                                                    \
	"ENS0_14DataHandleTypeERKN2ps6KVMetaERKNS3_7KVPairsIcEEPNS3_8KVServerIcEE"
static const struct adp_member kv_served[] = {{DATA_HANDLE("17DataHandleDefault"), "serve"},
					      {DATA_HANDLE("20DataHandleCompressed"), "serve compressed"},
					      {DATA_HANDLE("19DataHandleRowSparse"), "serve row_sparse"},
					      {NULL, NULL}};

#define KV_ROW(title, inside, functions, args, flags)                                                                  \
	{                                                                                                              \
		.name = title, .group = PROBE_KV, .always = adp_all, .pair_inside = inside, .optional = true,          \
		.family = {.members = functions},                                                                      \
		.row = {                                                                                               \
			.action = MXBPF_ACT_OPEN,                                                                      \
			.end = MXBPF_END_CUT,                                                                          \
			.cls = MXBPF_CLASS_KVSTORE,                                                                    \
			.name_type = MXBPF_NAMED_COOKIE,                                                               \
			.name = {.base = MXBPF_BASE_COOKIE},                                                           \
			.kv = args,                                                                                    \
			.kv_flags = flags,                                                                             \
		},                                                                                                     \
	}

/*
 * Versions with known fields of closures and executors. cu112 needs a GPU to run; constructors, copies and destructors
 * of its closures and arrays equal those of 1.9.1, instruction by instruction.
 */
#define CU112 "1.9.1 (cu112)"
static const char *const closures[] = {"1.9.1", CU112, "1.8.0.post0", "1.7.0.post2", NULL};
static const char *const pushes[] = {"1.9.1", CU112, "1.8.0.post0", "1.7.0.post2", "2.0.0b1", NULL};
static const char *const executors[] = {"1.9.1", CU112, "1.8.0.post0", NULL};

static const struct adp_place custom_forward[] = {{"1.9.1", 0x1a3fc60},	      {CU112, 0x3484260},
						  {"1.8.0.post0", 0x18eb250}, {"1.7.0.post2", 0x55bd710},
						  {"2.0.0b1", 0x19d7150},     {NULL}};
static const struct adp_place custom_backward[] = {{"1.9.1", 0x1a3fd10},       {CU112, 0x3484310},
						   {"1.8.0.post0", 0x18eb330}, {"1.7.0.post2", 0x55bd7d0},
						   {"2.0.0b1", 0x19d7200},     {NULL}};
static const struct adp_place custom_function[] = {{"1.9.1", 0x12dbea0},       {CU112, 0x2ce9230},
						   {"1.8.0.post0", 0x1160c90}, {"1.7.0.post2", 0x65b7170},
						   {"2.0.0b1", 0x11160e0},     {NULL}};

#define CUSTOM_PART(called, what, found, title, ...)                                                                   \
	{                                                                                                              \
		.name = called, .group = PROBE_CUSTOM, .optional = true, .symbols = {what ", what it hands over"},     \
		.hidden = {.places = found}, .span_name = title,                                                       \
		.row = {.action = MXBPF_ACT_OPEN, .end = MXBPF_END_CUT, .cls = MXBPF_CLASS_CUSTOM, __VA_ARGS__},       \
	}
#define CUSTOM_TYPE .name_type = MXBPF_NAMED_BYTES, .name = {ARG1, AT1(0)}
#define WORK_SPAN(how)                                                                                                 \
	.action = MXBPF_ACT_OPEN, .end = MXBPF_END_CUT, .cls = MXBPF_CLASS_OPERATOR, .inside = (how),                  \
	.name_type = MXBPF_NAMED_BYTES, .details = MXBPF_DETAIL_LAYER | MXBPF_DETAIL_ARGS
#define INSIDE_SPAN WORK_SPAN(MXBPF_INSIDE_NAMED)
/* The vector of write requests is this far after the vector of outputs; in most closures it follows directly. */
#define ARRAYS_REQS(in, out, reqs) .inputs_off = (in), .outputs_off = (out), .reqs_after = (reqs)
#define ARRAYS(in, out)		   ARRAYS_REQS(in, out, 24)
#define NODE(a)			   .name = {ARG1, AT2(a, 0)}, .layer = {ARG1, AT1((a) + 8)}
/* RunContext.is_bulk, passed by value on the stack. */
#define IN_BULK .guard = {STACK, .nderef = 1, .last_bytes = 1, .off = {32}}
#define STATEFUL_SPAN                                                                                                  \
	.action = MXBPF_ACT_OPEN, .end = MXBPF_END_CUT, .cls = MXBPF_CLASS_OPERATOR, .inside = MXBPF_INSIDE_NOTED,     \
	.details = MXBPF_DETAIL_LAYER | MXBPF_DETAIL_ARGS, ARRAYS(88, 40), .key = {ARG1, AT1(168)},                    \
	.size = {ARG1, .off = {88}}, .link = {ARG1, .off = {40}} /* inputs, outputs */
#define PART .span_flags = MXBPF_SPAN_PART

/*
 * In 2.0 closures hold addresses of arrays, and no word says that they run in a bulk. The places of the arrays and of a
 * node's attributes are known from the constructors and functions, with types in their names, that get the addresses.
 */
#define BULK "ImperativeBulk"
static const struct adp_layout fcompute_2[] = {
	{"2.0.0b1", {INSIDE_SPAN, NODE(176), ARRAYS(56, 8), .by_address = 1}, BULK}, {NULL}};
static const struct adp_layout fcompute_ex_2[] = {
	{"2.0.0b1", {INSIDE_SPAN, NODE(112), ARRAYS_REQS(32, 56, 32), .by_address = 1}, BULK}, {NULL}};
static const struct adp_layout stateful_ex_2[] = {
	{"2.0.0b1", {INSIDE_SPAN, NODE(120), ARRAYS_REQS(32, 56, 40), .by_address = 1}, BULK}, {NULL}};
static const struct adp_layout stateful_2[] = {{"2.0.0b1", {STATEFUL_SPAN, .by_address = 1}, BULK}, {NULL}};
#define EXECUTOR(version, ...)                                                                                         \
	{                                                                                                              \
		version, {__VA_ARGS__, PART, ARRAYS(8, 32)}, NULL                                                      \
	}
static const struct adp_layout fcompute_executors[] = {
	EXECUTOR("1.7.0.post2", INSIDE_SPAN, NODE(488)), EXECUTOR("2.0.0b1", INSIDE_SPAN, NODE(496)), {NULL}};
static const struct adp_layout ex_executors[] = {
	EXECUTOR("1.7.0.post2", INSIDE_SPAN, NODE(192)), EXECUTOR("2.0.0b1", INSIDE_SPAN, NODE(192)), {NULL}};
/* These keep no attributes. The offsets are OprBlock.opr and ThreadedOpr.opr_name. */
#define PLACED_SPAN WORK_SPAN(MXBPF_INSIDE_PLACED), .name = {.nderef = 2, .off = {8, 88}}
static const struct adp_layout stateful_executors[] = {
	EXECUTOR("1.7.0.post2", PLACED_SPAN), EXECUTOR("2.0.0b1", PLACED_SPAN), {NULL}};
static const struct adp_place stateful_places[] = {{"2.0.0b1", 0x1253d20}, {NULL}};

static const struct adp_probe probes[] = {
	/*
	 * API_BEGIN and API_END call these two in every function of the C API, with or without the profiler or an
	 * exception.
	 */
	{
		.name = "api.enter",
		.group = PROBE_API,
		.symbols = {"_ZN5mxnet12on_enter_apiEPKc"},
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_PAIR,
			.cls = MXBPF_CLASS_API,
			.at_call_site = 1,
			.name_type = MXBPF_NAMED_STATIC, /* __FUNCTION__ */
			.name = {ARG1},
			.details = MXBPF_DETAIL_STACK},
	},
	{
		.name = "api.exit",
		.group = PROBE_API,
		.symbols = {"_ZN5mxnet11on_exit_apiEv"},
		.row = {.action = MXBPF_ACT_CLOSE_PAIR, .cls = MXBPF_CLASS_API, .at_call_site = 1},
	},
	/* Instead of these two, each call itself: from its first instruction to its own cut. */
	{
		.name = "api.work",
		.group = PROBE_WORK,
		.always = waits,
		.family = {.list = work},
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_CUT,
			.cls = MXBPF_CLASS_API,
			.name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE},
			.details = MXBPF_DETAIL_STACK},
	},
	/*
	 * ExecuteOprBlock(engine, RunContext on the stack, OprBlock *; two more in 2.0) starts one engine operation.
	 * OnCompleteStatic(engine, OprBlock *, error) is its end, where MXNet's own profiler stops its clock. It may
	 * run on another thread.
	 */
	{
		.name = "operator.start",
		.group = PROBE_OP,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockE",
			    "_ZN5mxnet6engine14ThreadedEngine15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockENS0_"
			    "15CallbackOnStartENS0_18CallbackOnCompleteE"},
		.hidden = {.text = "ExecuteOprBlock "},
		.shown = ADP_SHOWN_BLOCK,
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_KEY,
			.cls = MXBPF_CLASS_OPERATOR,
			.name_type = MXBPF_NAMED_BYTES, /* a temporary std::string; its first word points to the text */
			.name = {ARG2, AT2(8, 88)},
			.key = {ARG2},
			.device = {ARG2, AT1(16)},
			.link = {ARG2, AT1(8)},
			.renamed = 1},
	},
	{
		.name = "operator.end",
		.group = PROBE_OP,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine16OnCompleteStaticEPNS_6EngineEPvPKN4dmlc5ErrorE"},
		.hidden = {.taken_by = "operator.start"},
		.row = {.action = MXBPF_ACT_CLOSE_KEY, .cls = MXBPF_CLASS_OPERATOR, .key = {ARG2}},
	},
	/*
	 * Operators of a bulk, and those that run alone, run through the closures of PushFCompute, PushFComputeEx and
	 * PushOperator. These hold a copy of the node's attributes, which have the operator and the name of the node.
	 * The run context says if they are in a bulk.
	 */
	{
		.name = "inside.fcompute",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = closures,
		.layouts = fcompute_2,
		.symbols = {"_ZZ" PUSH_FCOMPUTE "ENKUlNS_10RunContextEE_clES1G_"},
		.row = {INSIDE_SPAN, IN_BULK, NODE(176), ARRAYS(56, 8)},
	},
	{
		.name = "inside.fcompute_ex",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = closures,
		.layouts = fcompute_ex_2,
		.symbols = {"_ZZ" PUSH_FCOMPUTE_EX "ENKUlNS_10RunContextEE_clES1B_"},
		.row = {INSIDE_SPAN, IN_BULK, NODE(88), ARRAYS(208, 40)},
	},
	{
		.name = "inside.stateful_ex",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = closures,
		.layouts = stateful_ex_2,
		.symbols = {"_ZZ" PUSH_OPERATOR "ENKUlNS_10RunContextENSF_18CallbackOnCompleteEE_clES17_S18_",
			    "_ZZ" PUSH_OPERATOR
			    "ENKUlNS_10RunContextENSF_15CallbackOnStartENSF_18CallbackOnCompleteEE_clES17_S18_S19_"},
		.row = {INSIDE_SPAN, IN_BULK, NODE(88), ARRAYS(208, 40)},
	},
	/* This closure holds only the state. The operator's name is known when it is pushed. */
	{
		.name = "inside.push",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = pushes,
		.symbols = {"_Z" PUSH_OPERATOR},
		.row = {.action = MXBPF_ACT_NOTE,
			.name_type = MXBPF_NAMED_BYTES,
			.key = {ARG1, AT1(0)},
			.name = {ARG2, AT1(0)},
			.layer = {ARG3, AT1(8)}},
	},
	{
		.name = "inside.stateful",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = closures,
		.layouts = stateful_2,
		.ends = "inside.push",
		.symbols = {"_ZZ" PUSH_OPERATOR "ENKUlNS_10RunContextENSF_18CallbackOnCompleteEE1_clES17_S18_"},
		.hidden = {.places = stateful_places}, /* in 2.0 only its callers are named */
		.row = {STATEFUL_SPAN, IN_BULK},
	},
	/* Operators of a segment of a graph, and those of a graph without segments. */
	{
		.name = "inside.fcompute_executor",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = executors,
		.layouts = fcompute_executors,
		.symbols = {"_ZN5mxnet4exec16FComputeExecutor3RunENS_10RunContextEb"},
		.row = {INSIDE_SPAN, PART, NODE(168), ARRAYS(8, 32)},
	},
	{
		.name = "inside.fcompute_ex_executor",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = executors,
		.layouts = ex_executors,
		.symbols = {"_ZN5mxnet4exec18FComputeExExecutor3RunENS_10RunContextEb"},
		.row = {INSIDE_SPAN, PART, NODE(168), ARRAYS(8, 32)},
	},
	{
		.name = "inside.stateful_executor",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = executors,
		.layouts = stateful_executors,
		.symbols = {"_ZN5mxnet4exec23StatefulComputeExecutor3RunENS_10RunContextEb"},
		.row = {INSIDE_SPAN, PART, NODE(168), ARRAYS(8, 32)},
	},
	{
		.name = "inside.stateful_ex_executor",
		.group = PROBE_INSIDE,
		.needs = PROBE_OP,
		.optional = true,
		.versions = executors,
		.layouts = ex_executors,
		.symbols = {"_ZN5mxnet4exec25StatefulComputeExExecutor3RunENS_10RunContextEb"},
		.row = {INSIDE_SPAN, PART, NODE(168), ARRAYS(8, 32)},
	},
	/*
	 * The closure that ForwardEx and BackwardEx of custom operators pass to a separate thread. It begins with the
	 * parameters, op_type first, and calls the program. The built-in profiler times the same closure.
	 */
	CUSTOM_PART("custom.forward", "mxnet::op::custom::ForwardEx", custom_forward, "*::pure_python", CUSTOM_TYPE,
		    .name_tag = 1),
	CUSTOM_PART("custom.backward", "mxnet::op::custom::BackwardEx", custom_backward, "_backward_*::pure_python",
		    CUSTOM_TYPE, .name_tag = 3),
	/* The backward pass of an autograd function, whose type is empty. */
	CUSTOM_PART("custom.function", "mxnet::custom_function::Backward", custom_function, "::pure_python",
		    .name_type = MXBPF_NAMED_COOKIE, .name = {.base = MXBPF_BASE_COOKIE}),
	/* Push(engine, Opr *, ...), the function of operator.push */
	{
		.name = "custom.push",
		.group = PROBE_CUSTOM,
		.needs = PROBE_OP,
		.optional = true,
		.ends = "custom.forward",
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine4PushEPNS0_3OprENS_7ContextEib"},
		.hidden = {ENGINE = 6},
		.row = {.action = MXBPF_ACT_PUSHED, .key = {ARG2}},
	},
	/*
	 * NaiveEngine::PushAsync(engine, function, Context, reads, writes, property, priority, name) executes the
	 * operation before it returns. The engine's Push and PushSync also call it.
	 */
	{
		.name = "operator.naive",
		.group = PROBE_OP,
		.optional = true,
		.any_build = true, /* it reads only arguments */
		.symbols =
			{"_ZN5mxnet6engine11NaiveEngine9PushAsyncESt8functionIFvNS_10RunContextENS0_"
			 "18CallbackOnCompleteEEENS_7ContextERKSt6vectorIPNS0_3VarESaISA_EESE_NS_10FnPropertyEiPKcb",
			 "_ZN5mxnet6engine11NaiveEngine9PushAsyncESt8functionIFvNS_10RunContextENS0_"
			 "15CallbackOnStartENS0_"
			 "18CallbackOnCompleteEEENS_7ContextERKSt6vectorIPNS0_3VarESaISB_EESF_NS_10FnPropertyEiPKcb"},
		.hidden = {NAIVE = 7},
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_CUT,
			.cls = MXBPF_CLASS_OPERATOR,
			.at_once = 1,
			.renamed = 1,
			.name_type = MXBPF_NAMED_BYTES,
			.name = {STACK, AT1(16)},
			.device = {ARG3}},
	},
	/* Alloc(Handle *): the caller sets size and context, Alloc sets the address. */
	{
		.name = "memory.alloc",
		.group = PROBE_MEM,
		.symbols = {"_ZN5mxnet11StorageImpl5AllocEPNS_7Storage6HandleE"},
		.hidden = {STORAGE = 0},
		.shown = ADP_SHOWN_HANDLE,
		.row = {.action = MXBPF_ACT_ALLOC,
			.end = MXBPF_END_CUT,
			.link = {ARG2},
			.size = {ARG2, AT1(8)},
			.device = {ARG2, AT1(16)}},
	},
	/*
	 * Free(Handle) and DirectFree(Handle) get dptr, size and context by value on the stack. Without a dptr they do
	 * nothing.
	 */
	{
		.name = "memory.free",
		.group = PROBE_MEM,
		.symbols = {"_ZN5mxnet11StorageImpl4FreeENS_7Storage6HandleE"},
		.hidden = {STORAGE = 2},
		.shown = ADP_SHOWN_HANDLE_COPY,
		.row = {.action = MXBPF_ACT_FREE,
			.guard = {STACK, AT1(8)},
			.link = {STACK, AT1(8)},
			.size = {STACK, AT1(16)},
			.device = {STACK, AT1(24)}},
	},
	{
		.name = "memory.direct_free",
		.group = PROBE_MEM,
		.symbols = {"_ZN5mxnet11StorageImpl10DirectFreeENS_7Storage6HandleE"},
		.hidden = {STORAGE = 3},
		.shown = ADP_SHOWN_HANDLE_COPY,
		.row = {.action = MXBPF_ACT_FREE,
			.guard = {STACK, AT1(8)},
			.link = {STACK, AT1(8)},
			.size = {STACK, AT1(16)},
			.device = {STACK, AT1(24)}},
	},
	/*
	 * Push(engine, Opr *, ...), the function of operator.push. A bulk is pushed as a whole, and its operators
	 * through the functions behind, which have resources, inputs and outputs on the stack: vectors of addresses of
	 * arrays.
	 */
	{
		.name = "output.push",
		.group = PROBE_OUTPUT,
		.optional = true,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine4PushEPNS0_3OprENS_7ContextEib"},
		.hidden = {ENGINE = 6},
		.row = {.action = MXBPF_ACT_OUTPUT,
			.name_type = MXBPF_NAMED_BYTES,
			.name = {ARG2, AT1(88)},
			.link = {ARG2}},
	},
	OUTPUTS("output.fcompute", "_Z" PUSH_FCOMPUTE),
	OUTPUTS("output.fcompute_ex", "_Z" PUSH_FCOMPUTE_EX),
	OUTPUTS("output.operator", "_Z" PUSH_OPERATOR),
	/*
	 * In 2.0 an allocation of 0 bytes does not count, and a Handle has strings, so it is passed by address. Alloc
	 * passes it to OnAlloc(profiler, const Handle &) after it has set the address.
	 */
	{
		.name = "memory.alloc_2",
		.group = PROBE_MEM,
		.instead_of = "memory.alloc",
		.symbols = {"_ZN5mxnet8profiler21DeviceStorageProfiler7OnAllocERKNS_7Storage6HandleE"},
		.shown = ADP_SHOWN_HANDLE,
		.row = {.action = MXBPF_ACT_ALLOC,
			.guard = {ARG2, AT1(8)},
			.link = {ARG2, AT1(0)},
			.size = {ARG2, AT1(8)},
			.device = {ARG2, AT1(16)},
			.name_type = MXBPF_NAMED_BYTES,
			.name = {ARG2, AT1(32)}, /* the profiler scope, then the name of the array */
			.alt_name = {ARG2, AT1(40)}},
	},
	{
		.name = "memory.free_2",
		.group = PROBE_MEM,
		.instead_of = "memory.free",
		.symbols = {"_ZN5mxnet7storage11StorageImpl4FreeENS_7Storage6HandleE"},
		.shown = ADP_SHOWN_HANDLE,
		.row = {.action = MXBPF_ACT_FREE,
			.guard = {ARG2, AT1(0)},
			.link = {ARG2, AT1(0)},
			.size = {ARG2, AT1(8)},
			.device = {ARG2, AT1(16)}},
	},
	{
		.name = "memory.direct_free_2",
		.group = PROBE_MEM,
		.instead_of = "memory.direct_free",
		.symbols = {"_ZN5mxnet7storage11StorageImpl10DirectFreeENS_7Storage6HandleE"},
		.shown = ADP_SHOWN_HANDLE,
		.row = {.action = MXBPF_ACT_FREE,
			.guard = {ARG2, AT1(0)},
			.link = {ARG2, AT1(0)},
			.size = {ARG2, AT1(8)},
			.device = {ARG2, AT1(16)}},
	},
	/*
	 * Alloc(pool, Handle *, ...), nested in that of the storage. The value read is a size_t: the bytes that the
	 * pool has reserved on the device.
	 */
	POOL("pool.gpu", "_ZN5mxnet7storage23GPUPooledStorageManager5AllocEPNS_7Storage6HandleE", 8),
	POOL("pool.gpu_rounded", "_ZN5mxnet7storage30GPUPooledRoundedStorageManager5AllocEPNS_7Storage6HandleE", 24),
	POOL("pool.powers",
	     "_ZN5mxnet7storage20PooledStorageManagerINS0_11RoundPower2ENS0_15VectorContainerEE5AllocEPNS_7Storage"
	     "6HandleEb",
	     88),
	POOL("pool.multiples",
	     "_ZN5mxnet7storage20PooledStorageManagerINS0_13RoundMultipleENS0_21UnorderedMapContainerEE5AllocEPNS_7"
	     "Storage6HandleEb",
	     104),
	/*
	 * There is no function that reports a lack of memory. Alloc throws, as its pools do on a GPU after they have
	 * given back what they keep: "cudaMalloc retry failed: out of memory".
	 */
	{
		.name = "memory.throw",
		.group = PROBE_POOL,
		.optional = true,
		.lib_glob = "libgcc_s*.so*",
		.any_build = true,
		.symbols = {"_Unwind_RaiseException"},
		.row = {.action = MXBPF_ACT_THROWN},
	},
	/* These are called only by functions of the C API and end with them. */
	{
		.name = "wait.var",
		.group = PROBE_WAIT,
		.always = adp_all,
		.needs = PROBE_API | PROBE_WORK,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine10WaitForVarEPNS0_3VarE"},
		.hidden = {ENGINE = 9},
		.span_name = "WaitForVar",
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_PARENT,
			.cls = MXBPF_CLASS_WAIT,
			.key = {ARG2},
			.name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE},
			.details = MXBPF_DETAIL_STACK},
	},
	{
		.name = "wait.all",
		.group = PROBE_WAIT,
		.always = adp_all,
		.needs = PROBE_API | PROBE_WORK,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine10WaitForAllEv"},
		.hidden = {ENGINE = 10},
		.span_name = "WaitForAll",
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_PARENT,
			.cls = MXBPF_CLASS_WAIT,
			.name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE},
			.details = MXBPF_DETAIL_STACK},
	},
	/* Around the C API call: from its first instruction to its own cut. */
	{
		.name = "data.next",
		.group = PROBE_DATA,
		.always = adp_all,
		.optional = true,
		.family = {.list = data},
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_CUT,
			.cls = MXBPF_CLASS_DATA,
			.name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE}},
	},
	/*
	 * MXImperativeInvokeEx(Op *, number of inputs, NDArray **inputs, ...): the operator begins with its name, a
	 * std::string. The first word of the first input is the weight's storage, which stays the same while the
	 * NDArray may be a new one for each call.
	 */
	{
		.name = "step.update",
		.group = PROBE_STEP,
		.optional = true,
		.any_build = true,
		.symbols = {"MXImperativeInvokeEx", "MXImperativeInvoke"},
		.row = {.action = MXBPF_ACT_STEP,
			.step = MXBPF_STEP_UPDATE,
			.name = {ARG1, AT1(0)},
			.key = {ARG3, AT2(0, 0)}},
	},
	{
		.name = "step.backward",
		.group = PROBE_STEP,
		.always = adp_all,
		.optional = true,
		.symbols = {"MXAutogradBackwardEx"},
		.row = {.action = MXBPF_ACT_STEP, .step = MXBPF_STEP_BACKWARD},
	},
	{
		.name = "step.executor",
		.group = PROBE_STEP,
		.always = adp_all,
		.optional = true,
		.symbols = {"MXExecutorBackwardEx"},
		.row = {.action = MXBPF_ACT_STEP, .step = MXBPF_STEP_BACKWARD},
	},
	/*
	 * Keys are numbers, or texts in functions of their own. The cuts come before the call of on_exit_api, which
	 * ends these calls if it is probed. For pushes and pulls of workers, a server is asked.
	 */
	KV_ROW("kv.send", PROBE_API, kv_send, MXBPF_KV_SEND, 0),
	KV_ROW("kv.send_named", PROBE_API, kv_send_named, MXBPF_KV_SEND, MXBPF_KV_NAMED),
	KV_ROW("kv.receive", PROBE_API, kv_receive, MXBPF_KV_RECEIVE, 0),
	KV_ROW("kv.receive_named", PROBE_API, kv_receive_named, MXBPF_KV_RECEIVE, MXBPF_KV_NAMED),
	KV_ROW("kv.both", PROBE_API, kv_both, MXBPF_KV_BOTH, 0),
	KV_ROW("kv.both_named", PROBE_API, kv_both_named, MXBPF_KV_BOTH, MXBPF_KV_NAMED),
	KV_ROW("kv.barrier", PROBE_API, kv_barrier, MXBPF_KV_NOTHING, 0),
	KV_ROW("kv.serve", 0, kv_served, MXBPF_KV_SERVE, MXBPF_KV_SERVED),
	/* Functions that run once per iteration: of Gluon, of Module and of Executor. */
	{
		.name = "iteration.autograd",
		.group = PROBE_ITER,
		.always = adp_all,
		.optional = true,
		.symbols = {"MXAutogradBackwardEx"},
		.iteration = "*",
	},
	{
		.name = "iteration.executor",
		.group = PROBE_ITER,
		.always = adp_all,
		.optional = true,
		.symbols = {"MXExecutorBackwardEx"},
		.iteration = "*",
	},
	/*
	 * User annotations: tasks, frames and events (object), counters (object, value), markers (domain, name, scope).
	 */
	{
		.name = "mark.start",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXProfileDurationStart"},
		.row = {.action = MXBPF_ACT_MARK_START, MARK(264)},
	},
	{
		.name = "mark.stop",
		.group = PROBE_MARK,
		.optional = true,
		.ends = "mark.start",
		.symbols = {"MXProfileDurationStop"},
		.row = {.action = MXBPF_ACT_MARK_STOP},
	},
	{
		.name = "mark.end",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXProfileDestroyHandle"},
		.row = {.action = MXBPF_ACT_MARK_END},
	},
	{
		.name = "counter.set",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXProfileSetCounter"},
		.row = {.action = MXBPF_ACT_MARK_SET, MARK(136), .key = {ARG1, AT1(144)}, .size = {ARG2}},
	},
	{
		.name = "counter.adjust",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXProfileAdjustCounter"},
		.row = {.action = MXBPF_ACT_MARK_ADJUST, MARK(136), .key = {ARG1, AT1(144)}, .size = {ARG2}},
	},
	{
		.name = "marker",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXProfileSetMarker"},
		.row = {.action = MXBPF_ACT_MARK_INSTANT, MARK(0)},
	},
	/* Calls of the built-in profiler (argument, which process, ...). The older functions call these. */
	{
		.name = "profiler.state",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXSetProcessProfilerState"},
		.row = {.action = MXBPF_ACT_APP, .name_tag = MXBPF_APP_STATE},
	},
	{
		.name = "profiler.pause",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXProcessProfilePause"},
		.row = {.action = MXBPF_ACT_APP, .name_tag = MXBPF_APP_PAUSE},
	},
	{
		.name = "profiler.dump",
		.group = PROBE_MARK,
		.optional = true,
		.symbols = {"MXDumpProcessProfile"},
		.row = {.action = MXBPF_ACT_APP, .name_tag = MXBPF_APP_DUMP},
	},
	/* Push(engine, Opr *, ...): operator.start finds the same operation as OprBlock.opr. */
	{
		.name = "operator.push",
		.group = PROBE_LINK,
		.optional = true,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine4PushEPNS0_3OprENS_7ContextEib"},
		.hidden = {ENGINE = 6},
		.row = {.action = MXBPF_ACT_EDGE, .link = {ARG2}},
	},
	/*
	 * PushSync(engine, function, Context, reads, writes, property, priority, name) pushes an operation, or puts it
	 * into a bulk. The bulk is pushed later, and writes what its operators write.
	 */
	{
		.name = "life.claim",
		.group = PROBE_LIFE,
		.optional = true,
		.any_build = true, /* it reads a vector and arguments */
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine8PushSyncESt8functionIFvNS_10RunContextEEENS_7ContextE"
			    "RKSt6vectorIPNS0_3VarESaIS9_EESD_NS_10FnPropertyEiPKc"},
		.hidden = {ENGINE = 14},
		.row = {.action = MXBPF_ACT_LIFE_CLAIM,
			.name_type = MXBPF_NAMED_BYTES,
			.name = {STACK, AT1(16)},
			.key = {ARG5, AT1(0)},
			.size = {ARG5, AT1(8)}},
	},
	/* Push(engine, Opr *, ...): every push calls it. It has the name and the written variables. */
	{
		.name = "life.push",
		.group = PROBE_LIFE,
		.symbols = {"_ZN5mxnet6engine14ThreadedEngine4PushEPNS0_3OprENS_7ContextEib"},
		.hidden = {ENGINE = 6},
		.row = {.action = MXBPF_ACT_LIFE_PUSH,
			.name_type = MXBPF_NAMED_BYTES,
			.name = {ARG2, AT1(88)},
			.key = {ARG2, AT1(56)},
			.size = {ARG2, AT1(64)},
			.link = {ARG2}},
	},
	/* PushToExecute(engine, OprBlock *, by its pusher): all dependencies of the operation are met. */
	{
		.name = "life.ready",
		.group = PROBE_LIFE,
		.symbols = {"_ZN5mxnet6engine23ThreadedEnginePerDevice13PushToExecuteEPNS0_8OprBlockEb"},
		.hidden = {ENGINE = 17},
		.row = {.action = MXBPF_ACT_LIFE_READY, .key = {ARG2}, .link = {ARG2, AT1(8)}},
	},
	{
		.name = "life.ready_pooled",
		.group = PROBE_LIFE,
		.symbols = {"_ZN5mxnet6engine20ThreadedEnginePooled13PushToExecuteEPNS0_8OprBlockEb"},
		.hidden = {POOLED = 17},
		.row = {.action = MXBPF_ACT_LIFE_READY, .key = {ARG2}, .link = {ARG2, AT1(8)}},
	},
};

/* Type numbers of mshadow. */
static const char *const dtypes[] = {"float32", "float64", "float16", "uint8",		"int32",
				     "int8",	"int64",   "bool",    [12] = "bfloat16"};

/* It has the Python stack of the call that had to wait for it, while each of its operators has its own. */
static const char *const hidden[] = {BULK, NULL};

static const struct adp_device devices[] = {
	{1, "cpu", true},
	{2, "gpu", true},
	{3, "cpu pinned", false},
	{5, "cpu shared", false},
};

/* mxnet::TShape in NDArray. */
static const struct adp_array arrays[] = {{"1.", 4, 224}, {"2.0", 8, 312}, {NULL, 0, 0}};

/* Roles of ps-lite. Its tracker may set the numbers or not. */
static const struct adp_role roles[] = {{"worker", "DMLC_WORKER_ID", "DMLC_NUM_WORKER"},
					{"server", "DMLC_SERVER_ID", "DMLC_NUM_SERVER"},
					{"scheduler", NULL, NULL},
					{NULL, NULL, NULL}};

static const struct adp_build builds[] = {
	{"472988f6268780302be9ee15d6c53d9a07b534f5", "1.9.1"},
	{"5bc47870a585123f6a8ebc2f323c4150a4bb77d5", "1.8.0.post0"},
	{"21523d12a76c87a198d01d373f23cc58c7c019b2", "1.7.0.post2"},
	{"9523fbda21d9ef14722537c1896afda0cdd1778e", CU112},
	{"253f6e82c9aa7c1924a1309ab42b273c9afc0816", "2.0.0b1"},
	{"2cc62005295a1a63e0a6f4eed7be633abfb634bf", "1.5.1.post0"},
	{"f5da45d4788cfbdf064c54587579cac3bfa471ce", "1.6.0 (mkl)"},
};

const struct adp adapter_mxnet = {
	.name = "mxnet",
	.title = "MXNet",
	.lib_glob = "libmxnet.so*",
	.probes = probes,
	.nprobes = COUNT(probes),
	.hidden = hidden,
	.devices = devices,
	.ndevices = COUNT(devices),
	.builds = builds,
	.nbuilds = COUNT(builds),
	.class_title = {[MXBPF_CLASS_API] = "MXNET_C_API",
			[MXBPF_CLASS_OPERATOR] = "operator",
			[MXBPF_CLASS_WAIT] = "Engine wait",
			[MXBPF_CLASS_CUSTOM] = "Custom Operator",
			[MXBPF_CLASS_TASK] = "Task",
			[MXBPF_CLASS_FRAME] = "Frame",
			[MXBPF_CLASS_EVENT] = "Event",
			[MXBPF_CLASS_DATA] = "Data",
			[MXBPF_CLASS_KVSTORE] = "KVStore"},
	.marks = {.classes = {"N5mxnet8profiler11ProfileTaskE", "N5mxnet8profiler12ProfileFrameE",
			      "N5mxnet8profiler12ProfileEventE"},
		  .profiler = "_ZN5mxnet8profiler8Profiler3GetEPSt10shared_ptrIS1_E",
		  .autostart_env = "MXNET_PROFILER_AUTOSTART",
		  .set_state = "_ZN5mxnet8profiler8Profiler8SetStateENS1_13ProfilerStateE"},
	.arrays = arrays,
	.role_env = "DMLC_ROLE",
	.meet_env = {"DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT"},
	.roles = roles,
	.job_backend = "ps-lite",
	.mem_title = "Device Storage",
	.c_api = "MX",
	.args = {.dtypes = dtypes, .ndtypes = COUNT(dtypes)},
	.iteration_title = "a backward pass (MXAutogradBackwardEx, MXExecutorBackwardEx)",
	.call_end = "_ZN5mxnet11on_exit_apiEv",
	.agent = {.entries = {"MXImperativeInvokeEx", "MXImperativeInvoke"}},
};
