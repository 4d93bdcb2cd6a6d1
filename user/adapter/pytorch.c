// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch 1.13 and later. No row reads a structure of a build: names come from symbols, constant strings and RTTI,
 * everything else from arguments. C++ functions that an exception may cross end by a cut. A return probe would end the
 * job.
 */
#include "adapter/adapter.h"
#include "mxbpf_args.h"
#include "mxbpf_step.h"

#include <stddef.h>

#define ARG1	  .base = MXBPF_BASE_ARG1
#define ARG2	  .base = MXBPF_BASE_ARG2
#define ARG3	  .base = MXBPF_BASE_ARG3
#define AT1(a)	  .nderef = 1, .off = {a}
#define AT2(a, b) .nderef = 2, .off = {a, b}
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

enum { DEVICE_CPU = 1 };

/* Letters of base 32. */
#define HASH_5	"[a-z2-7][a-z2-7][a-z2-7][a-z2-7][a-z2-7]"
#define HASH_25 HASH_5 HASH_5 HASH_5 HASH_5 HASH_5

/* Python's autograd Functions: Node -> Python object -> its type -> tp_name. */
#define PYTHON_NODE                                                                                                    \
	.alt_lib_glob = "libtorch_python.so*", .alt_vtable = "_ZTVN5torch8autograd6PyNodeE",                           \
	.alt_readers = {"_ZNK5torch8autograd6PyNode4nameB5cxx11Ev", "_ZNK5torch8autograd6PyNode4nameEv"}
#define AT_PYTHON_NAME .nderef = 3, .off = {0x70, 8, 24}

/* Sequence numbers of nodes. The offsets come from the code of the build; see struct adp_seq. */
#define SEQ_OF(node) .seq = {node, AT1(0x10)}, .seq_thread = {node, AT1(0x28)}

/* Tags of rows whose spans are named by an object's class. */
enum { TAG_EVALUATE = 1, TAG_NODE = 2 };

#define OPERATOR_SPAN .action = MXBPF_ACT_OPEN, .cls = MXBPF_CLASS_OPERATOR, .merge_same = 1
#define DISPATCH_SPAN OPERATOR_SPAN, .details = MXBPF_DETAIL_SEQ | MXBPF_DETAIL_ARGS | MXBPF_DETAIL_STACK

#define CALL_BOXED "_ZNK3c1010Dispatcher9callBoxedERKNS_14OperatorHandleEPSt6vectorINS_6IValueESaIS5_EE"
/* OperatorHandle -> OperatorDef -> name. */
#define BOXED_NAME(handle) .name_type = MXBPF_NAMED_BYTES, .name = {handle, AT2(0, 0)}
#define BOXED_SPAN(handle) DISPATCH_SPAN, .end = MXBPF_END_CUT, .hides = 1, BOXED_NAME(handle)
/* Node::operator()(hidden result, this, inputs). */
#define NODE_SPAN                                                                                                      \
	OPERATOR_SPAN, .end = MXBPF_END_CUT, .name_type = MXBPF_NAMED_OBJECT, .name_tag = TAG_NODE,                    \
		       .name = {ARG2, AT1(0)}, .alt_name = {ARG2, AT_PYTHON_NAME}, SEQ_OF(ARG2),                       \
		       .details = MXBPF_DETAIL_SEQ | MXBPF_DETAIL_ARGS | MXBPF_DETAIL_STACK,                           \
		       .span_flags = MXBPF_SPAN_BACKWARD

/* Every dispatch calls at::getStepCallbacksUnlessEmpty(RecordScope) to ask if a profiler is active. */
#define STEP_CALLBACKS "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"
/* The dispatcher passes the arguments of a call to its RecordFunction. */
#define RUN_RECORD                                                                                                     \
	"_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIKNS_14FunctionSchemaEE"    \
	"NS_11DispatchKeyE"
enum { SCOPE_FUNCTION = 0, SCOPE_BACKWARD_FUNCTION = 1 };

/* Annotations of a thread may cross: coroutines have some each. */
#define ANNOTATION OPERATOR_SPAN, .end = MXBPF_END_PAIR, .unscoped = 1, .span_flags = MXBPF_SPAN_USER, .key_later = 1

/* In libraries without symbols, clones of callBoxed(handle, stack) call kernel(functor, handle, keys, stack). */
#define UNNAMED_BOXED .family = {.calls = STEP_CALLBACKS, .shape = {SCOPE_FUNCTION, {0, 1, 0, 2}}}
/*
 * Collectives: members of c10d::ProcessGroup, some under the additional names of newer builds, and the operators that
 * they call.
 */
static const struct adp_member collectives[] = {
	{"allreduce", "allreduce_"},
	{"allreduce_coalesced", "allreduce_coalesced_"},
	{"allgather", "allgather_"},
	{"allgather_coalesced", "allgather_coalesced_"},
	{"_allgather_base", "_allgather_base_"},
	{"all_gather_single", "_allgather_base_"},
	{"allgather_into_tensor_coalesced", "allgather_into_tensor_coalesced_"},
	{"all_gather_single_coalesced", "allgather_into_tensor_coalesced_"},
	{"reduce_scatter", "reduce_scatter_"},
	{"_reduce_scatter_base", "_reduce_scatter_base_"},
	{"reduce_scatter_single", "_reduce_scatter_base_"},
	{"reduce_scatter_tensor_coalesced", "reduce_scatter_tensor_coalesced_"},
	{"reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced_"},
	{"alltoall", "alltoall_"},
	{"alltoall_base", "alltoall_base_"},
	{"all_to_all_single", "alltoall_base_"},
	{"broadcast", "broadcast_"},
	{"reduce", "reduce_"},
	{"gather", "gather_"},
	{"scatter", "scatter_"},
	{"barrier", "barrier"},
	{"monitoredBarrier", "monitored_barrier_"},
	{"send", "send"},
	{"recv", "recv_"},
	{"recvAnysource", "recv_any_source_"},
	{0},
};

/* Optimizers of C++. Those of Python annotate their steps. */
#define STEP_OF(optimizer) "_ZN5torch5optim" optimizer "4stepESt8functionIFN2at6TensorEvEE"
static const char *const optimizer_steps[] = {STEP_OF("3SGD"),
					      STEP_OF("4Adam"),
					      STEP_OF("5AdamW"),
					      STEP_OF("7Adagrad"),
					      STEP_OF("7RMSprop"),
					      STEP_OF("5LBFGS"),
					      NULL};

#define COLLECTIVES .prefix = "_ZN4c10d12ProcessGroup", .method = "E", .schema = "c10d::", .members = collectives

#define REPORT_SYMBOLS                                                                                                 \
	"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_"       \
								 "6DeviceE"

#define UNMAP(NAME, SYMBOL)                                                                                            \
	{                                                                                                              \
		.name = NAME, .group = PROBE_MEM, .optional = true, .lib_glob = "libtorch_cpu.so*", .any_build = true, \
		.symbols = {SYMBOL},                                                                                   \
		.row = {.action = MXBPF_ACT_FREE,                                                                      \
			.key = {ARG1, AT1(72)},                                                                        \
			.size = {ARG1, AT1(56)},                                                                       \
			.guard = {ARG1, AT1(72)},                                                                      \
			.device_const = MXBPF_DEVICE(DEVICE_CPU, 0)},                                                  \
	}

static const struct adp_probe probes[] = {
	/* Every unboxed dispatch of an operator: at::_ops::NAME_OVERLOAD::call(...). */
	{
		.name = "operator.call",
		.group = PROBE_OP,
		.by_agent = true,
		.any_build = true,
		.family = {.prefix = "_ZN2at4_ops", .method = "4callE", .schema = "aten::"},
		.row = {DISPATCH_SPAN, .end = MXBPF_END_CUT, .name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE}},
	},
	/* torch.distributed: functions of a header, so both libraries have copies. */
	{
		.name = "collective.call",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.family = {COLLECTIVES},
		.row = {OPERATOR_SPAN, .end = MXBPF_END_CUT, .name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE}},
	},
	{
		.name = "collective.call_python",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.lib_glob = "libtorch_python.so*",
		.any_build = true,
		.family = {COLLECTIVES},
		.row = {OPERATOR_SPAN, .end = MXBPF_END_CUT, .name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE}},
	},
	/* Gloo's work for a collective, from the request to the end, mostly on another thread: (this, title). */
	{
		.name = "collective.work",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.family = {.prefix = "_ZN4c10d16ProcessGroupGloo9AsyncWork28recordAsyncWorkProfilingInfoEPKc"},
		.tensors_arg = 3, /* std::optional<std::vector<Tensor>>, which a barrier leaves empty */
		.tensors_opt = 24,
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_KEY,
			.cls = MXBPF_CLASS_OPERATOR,
			.span_flags = MXBPF_SPAN_USER,
			.details = MXBPF_DETAIL_ARGS,
			.name_type = MXBPF_NAMED_BYTES,
			.name = {ARG2},
			.key = {ARG1}},
	},
	{
		.name = "collective.done",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.ends = "collective.work",
		.any_build = true,
		.family = {.prefix = "_ZN4c10d16ProcessGroupGloo9AsyncWork14finishWorkGloo"},
		.row = {.action = MXBPF_ACT_CLOSE_KEY, .cls = MXBPF_CLASS_OPERATOR, .key = {ARG1}},
	},
	{
		.name = "collective.failed",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.ends = "collective.work",
		.any_build = true,
		.family = {.prefix = "_ZN4c10d16ProcessGroupGloo9AsyncWork19finishWorkGlooError"},
		.row = {.action = MXBPF_ACT_CLOSE_KEY, .cls = MXBPF_CLASS_OPERATOR, .key = {ARG1}},
	},
	/* All operators through one probe, for backends with few probes. Their arguments are not visible there. */
	{
		.name = "operator.step",
		.group = PROBE_OP,
		.by_agent = true,
		.instead_of = "operator.call",
		.any_build = true,
		.family = {.prefix = "_ZN2at4_ops", .method = "4callE", .schema = "aten::", .calls = STEP_CALLBACKS},
		.row = {OPERATOR_SPAN, .end = MXBPF_END_NEXT, .name_type = MXBPF_NAMED_COOKIE,
			.details = MXBPF_DETAIL_SEQ | MXBPF_DETAIL_STACK, .name = {.base = MXBPF_BASE_COOKIE},
			.by_caller = 1},
	},
	/* Ends these spans early: the result of an operator called from Python is wrapped for Python. */
	{
		.name = "operator.wrap",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.instead_of = "operator.call",
		.lib_glob = "libtorch_python.so*",
		.any_build = true,
		.family = {.prefix = "_Z16THPVariable_Wrap"},
		.row = {.action = MXBPF_ACT_TICK},
	},
	/* Boxed dispatch of TorchScript and torch.ops: Dispatcher::callBoxed(this, handle, stack). */
	{
		.name = "operator.call_boxed",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.symbols = {CALL_BOXED},
		.values_arg = 3,
		.row = {BOXED_SPAN(ARG2)},
	},
	/* Clones of callBoxed, which have no `this`. */
	{
		.name = "operator.call_boxed_clone",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.instead_of = "operator.call_boxed",
		.any_build = true,
		.family = {.prefix = CALL_BOXED ".isra"},
		.values_arg = 2,
		.row = {BOXED_SPAN(ARG1)},
	},
	{
		.name = "operator.call_boxed_unnamed",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.instead_of = "operator.call_boxed_clone",
		.any_build = true,
		UNNAMED_BOXED,
		.values_arg = 2,
		.row = {BOXED_SPAN(ARG1)},
	},
	/* Engine::evaluate_function(this, shared_ptr<GraphTask> &, Node *, ...). */
	{
		.name = "autograd.evaluate",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.family = {.prefix = "_ZN5torch8autograd6Engine17evaluate_functionE"},
		.span_name = "autograd::engine::evaluate_function: ",
		PYTHON_NODE,
		.row = {OPERATOR_SPAN, .end = MXBPF_END_CUT, .name_type = MXBPF_NAMED_OBJECT, .name_tag = TAG_EVALUATE,
			.name = {ARG3, AT1(0)}, .alt_name = {ARG3, AT_PYTHON_NAME}, SEQ_OF(ARG3),
			.details = MXBPF_DETAIL_SEQ | MXBPF_DETAIL_STACK},
	},
	{
		.name = "autograd.node",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.family = {.prefix = "_ZN5torch8autograd4NodeclE"},
		.tensors_arg = 3,
		PYTHON_NODE,
		.row = {NODE_SPAN},
	},
	/* In a stripped library: operator()(hidden result, this, ...) calls apply(hidden result, this, ...). */
	{
		.name = "autograd.node_unnamed",
		.group = PROBE_OP,
		.by_agent = true,
		.optional = true,
		.instead_of = "autograd.node",
		.any_build = true,
		.family = {.calls = STEP_CALLBACKS, .shape = {SCOPE_BACKWARD_FUNCTION, {1, 2}}},
		.tensors_arg = 3,
		PYTHON_NODE,
		.row = {NODE_SPAN},
	},
	/*
	 * record_function("name") of Python, including optimizer steps: enter(hidden result, const std::string &, ...).
	 */
	{
		.name = "annotation.enter",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.family = {.prefix = "_ZN5torch8autograd8profiler25record_function_enter_newE"},
		.iteration = "Optimizer.step#",
		.row = {ANNOTATION, .name_type = MXBPF_NAMED_BYTES, .name = {ARG2, AT1(0)},
			.details = MXBPF_DETAIL_STACK},
	},
	/* The same of PyTorch 1.13, and of models of that time. */
	{
		.name = "annotation.enter_legacy",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.family = {.prefix = "_ZN5torch8autograd8profilerL28record_function_enter_legacyE"},
		.iteration = "Optimizer.step#",
		.row = {ANNOTATION, .name_type = MXBPF_NAMED_BYTES, .name = {ARG2, AT1(0)},
			.details = MXBPF_DETAIL_STACK},
	},
	/* A step begins: step(hidden result, this, ...). */
	{
		.name = "step.optimizer",
		.group = PROBE_STEP,
		.always = adp_all,
		.optional = true,
		.expendable = true,
		.any_build = true,
		.family = {.list = optimizer_steps},
		.row = {.action = MXBPF_ACT_STEP, .step = MXBPF_STEP_OPTIMIZER, .key = {ARG2}},
	},
	{
		.name = "iteration.optimizer",
		.group = PROBE_ITER,
		.always = adp_all,
		.optional = true,
		.expendable = true,
		.any_build = true,
		.family = {.list = optimizer_steps},
		.iteration = "*",
	},
	/*
	 * The operator that Python calls for it: enter(name, args) has its arguments on the stack; the name is an
	 * IValue -> ConstantString -> string.
	 */
	{
		.name = "annotation.enter_boxed",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.instead_of = "annotation.enter_legacy",
		.any_build = true,
		UNNAMED_BOXED,
		.only = "profiler::_record_function_enter",
		.row = {ANNOTATION, BOXED_NAME(ARG1), .alt_name = {ARG2, .nderef = 3, .off = {8, -32, 24}}},
	},
	/*
	 * RecordFunction(this, scope) and end(this): an annotation has such an object, which enter() makes. So have
	 * calls of TorchScript and others. end() is called again when the object is deleted.
	 */
	{
		.name = "annotation.object",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.any_build = true,
		.symbols = {"_ZN2at14RecordFunctionC1ENS_11RecordScopeE", "_ZN2at14RecordFunctionC2ENS_11RecordScopeE"},
		.row = {.action = MXBPF_ACT_KEYED, .key = {ARG1}},
	},
	{
		.name = "annotation.exit",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.ends = "annotation.object",
		.any_build = true,
		.symbols = {"_ZN2at14RecordFunction3endEv"},
		.row = {.action = MXBPF_ACT_CLOSE_PAIR,
			.cls = MXBPF_CLASS_OPERATOR,
			.unscoped = 1,
			.key = {ARG1},
			.key_later = 1},
	},
	/*
	 * Kernels of torch.compile (torch/_inductor/codecache.py): DIR/im/cimefqv2....so, named by a hash of 52
	 * letters.
	 */
	{
		.name = "kernel.compiled",
		.group = PROBE_OP,
		.optional = true,
		.any_build = true,
		.each_lib = "*/[a-z2-7][a-z2-7]/c" HASH_25 HASH_25 "[a-z2-7]*.so",
		.symbols = {"kernel"},
		.span_name = "inductor::",
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_CUT,
			.cls = MXBPF_CLASS_KERNEL,
			.leaf = 1,
			.name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE}},
	},
	/*
	 * Operators that the code of an AOTInductor package calls by PyTorch's C interface, past the dispatcher. Many
	 * of these functions only hand on to the dispatcher. If a package was compiled with
	 * TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1, torch.profiler has them by the same names.
	 */
	{
		.name = "operator.shim",
		.group = PROBE_OP,
		.by_agent = true,
		.ended = true,
		.optional = true,
		.any_build = true,
		.each_lib = "*/libtorch_cpu.so*",
		.with_lib = "*.wrapper.so", /* of a package */
		.beside = true,
		.family = {.prefix = "aoti_torch_cpu_"},
		.row = {OPERATOR_SPAN, .end = MXBPF_END_CUT, .details = MXBPF_DETAIL_STACK,
			.name_type = MXBPF_NAMED_COOKIE, .name = {.base = MXBPF_BASE_COOKIE}},
	},
	/* Kernels of an AOTInductor package, which PyTorch unpacks: DIR/data/aotinductor/model/c....wrapper.so. */
	{
		.name = "kernel.packaged",
		.group = PROBE_OP,
		.ended = true,
		.optional = true,
		.any_build = true,
		.each_lib = "*/data/aotinductor/*.so",
		.family = {.prefix = "cpp_"},
		.row = {.action = MXBPF_ACT_OPEN,
			.end = MXBPF_END_CUT,
			.cls = MXBPF_CLASS_KERNEL,
			.leaf = 1,
			.name_type = MXBPF_NAMED_COOKIE,
			.name = {.base = MXBPF_BASE_COOKIE}},
	},
	/*
	 * Exceptions leave functions without passing their ends. With this probe, an end that is missing without an
	 * exception shows a wrong cut.
	 */
	{
		.name = "exception.throw",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.lib_glob = "libgcc_s*.so*",
		.any_build = true,
		.symbols = {"_Unwind_RaiseException"},
		.row = {.action = MXBPF_ACT_RAISE},
	},
	{
		.name = "exception.rethrow",
		.group = PROBE_OP,
		.always = adp_all,
		.by_agent = true,
		.optional = true,
		.lib_glob = "libgcc_s*.so*",
		.any_build = true,
		.symbols = {"_Unwind_Resume_or_Rethrow"},
		.row = {.action = MXBPF_ACT_RAISE},
	},
	/*
	 * Called for every tensor storage, with or without the profiler: New(this, address, bytes), Delete(this,
	 * address).
	 */
	{
		.name = "memory.alloc",
		.group = PROBE_MEM,
		.by_agent_memory = true,
		.lib_glob = "libc10.so*",
		.any_build = true,
		.symbols = {"_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"},
		.row = {.action = MXBPF_ACT_ALLOC,
			.key = {ARG2},
			.size = {ARG3},
			.device_const = MXBPF_DEVICE(DEVICE_CPU, 0)},
	},
	{
		.name = "memory.free",
		.group = PROBE_MEM,
		.by_agent_memory = true,
		.lib_glob = "libc10.so*",
		.any_build = true,
		.symbols = {"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"},
		.row = {.action = MXBPF_ACT_FREE, .key = {ARG2}, .device_const = MXBPF_DEVICE(DEVICE_CPU, 0)},
	},
	/*
	 * All other allocators report: those of devices, those that the program registers, and storages in shared
	 * memory. CPU memory whose allocator is probed above is reported from the library itself, while the
	 * program's profiler asks for it.
	 *
	 * Storages in shared memory, in which workers of a DataLoader pass batches, do not come from that allocator.
	 * They end in close(this), which finds their size at offset 56 and clears their address at offset 72.
	 */
	{
		.name = "memory.report",
		.group = PROBE_MEM,
		.optional = true,
		.lib_glob = "libc10.so*",
		.any_build = true,
		.symbols = {REPORT_SYMBOLS},
		.row = {.action = MXBPF_ACT_REPORT, .key = {ARG1}, .size = {ARG2}},
	},
	/* Allocators of devices report when they give up, after they have freed what they could. */
	{
		.name = "memory.failed",
		.group = PROBE_MEM,
		.always = adp_all,
		.optional = true,
		.lib_glob = "libc10.so*",
		.any_build = true,
		.symbols = {"_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
			    "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"},
		.row = {.action = MXBPF_ACT_FAILED},
	},
	UNMAP("memory.unmap", "_ZN2at12MapAllocator5closeEv"),
	UNMAP("memory.unmap_shared", "_ZN2at22RefcountedMapAllocator5closeEv"),
};

static const struct adp_device devices[] = {
	{DEVICE_CPU, "cpu", true},
	/* c10::DeviceType + 1 */
	{2, "cuda", true},
	{7, "hip", true},
	{10, "xla", true},
	{13, "xpu", true},
	{14, "mps", true},
	{16, "hpu", true},
	{20, "mtia", true},
	{21, "privateuseone", true},
};

/* at::ObservedOperators, unchanged since 1.7. */
static const char *const hidden[] = {
	"aten::size",
	"aten::is_leaf",
	"aten::output_nr",
	"aten::_version",
	"aten::is_complex",
	"profiler::_record_function_enter",
	"profiler::_record_function_enter_new",
	"profiler::_record_function_exit",
	NULL,
};
MXBPF_STATIC_ASSERT(sizeof(hidden) / sizeof(*hidden) <= MXBPF_HIDDEN_MAX + 1); /* and NULL */

/* Most memory that other operators need comes from these. */
static const char *const lenders[] = {
	"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::resize_", NULL,
};
MXBPF_STATIC_ASSERT(sizeof(lenders) / sizeof(*lenders) <= MXBPF_LENDERS_MAX + 1); /* and NULL */

#define SCALAR	   .kind = MXBPF_ARG_SCALAR
#define SCALARS	   .kind = MXBPF_ARG_SCALARS
#define IF_HERE(a) .opt = MXBPF_ARG_IF_HERE, .opt_off = a

/*
 * Types of schemas as at::_ops passes them: Tensor & is an address; ArrayRef and string_view are two words; an optional
 * of these three is passed on the stack; an object with a destructor is passed by address.
 */
static const struct adp_type types[] = {
	{"Tensor", "", .kind = MXBPF_ARG_TENSOR, .gp = 1},
	{"Tensor", "?", .kind = MXBPF_ARG_TENSOR_OPT, .gp = 1},
	{"Tensor", "[]", .kind = MXBPF_ARG_TENSORS, .gp = 2},
	{"Tensor", "?[]", .gp = 1},
	{"int", "", SCALAR, .gp = 1},
	{"int", "?", SCALAR, .gp = 2, IF_HERE(8)},
	{"int", "[]", SCALARS, .gp = 2},
	{"int", "[]?", SCALARS, .stack = 3, IF_HERE(16)},
	{"SymInt", "", SCALAR, .gp = 1},
	{"SymInt", "?", SCALAR, .gp = 1, .opt = MXBPF_ARG_IF_THERE, .opt_off = 8},
	{"SymInt", "[]", SCALARS, .gp = 2},
	{"SymInt", "[]?", SCALARS, .stack = 3, IF_HERE(16)},
	{"bool", "", SCALAR, .gp = 1},
	{"bool", "?", SCALAR, .gp = 1, IF_HERE(1)},
	{"bool", "[]", SCALARS, .gp = 2},
	{"bool", "[N]", SCALARS, .gp = 1},
	{"float", "", SCALAR, .fp = 1},
	{"float", "?", SCALAR, .gp = 1, .fp = 1, IF_HERE(8)},
	{"float", "[]", SCALARS, .gp = 2},
	{"float", "[]?", SCALARS, .stack = 3, IF_HERE(16)},
	{"Scalar", "", SCALAR, .gp = 1},
	{"Scalar", "?", SCALAR, .gp = 1, .opt = MXBPF_ARG_IF_THERE, .opt_off = 32},
	{"Scalar", "[]", SCALARS, .gp = 2},
	{"ScalarType", "", SCALAR, .gp = 1},
	{"ScalarType", "?", SCALAR, .gp = 1, IF_HERE(1)},
	{"Layout", "", SCALAR, .gp = 1},
	{"Layout", "?", SCALAR, .gp = 1, IF_HERE(1)},
	{"MemoryFormat", "", SCALAR, .gp = 1},
	{"MemoryFormat", "?", SCALAR, .gp = 1, IF_HERE(1)},
	{"DeviceIndex", "", SCALAR, .gp = 1},
	{"Device", "", .gp = 1},
	{"Device", "?", .gp = 1},
	{"str", "", .gp = 2},
	{"str", "?", .stack = 3},
	{"Generator", "", .gp = 1},
	{"Generator", "?", .gp = 1},
	{"Dimname", "", .gp = 1},
	{"Dimname", "[]", .gp = 2},
	{"Dimname", "[]?", .stack = 3},
	{"Storage", "", .gp = 1},
	{"Stream", "", .gp = 2},
	{NULL},
};

/* By number of c10::ScalarType. */
static const char *const dtypes[] = {
	"unsigned char",
	"signed char",
	"short int",
	"int",
	"long int",
	"c10::Half",
	"float",
	"double",
	"c10::complex<c10::Half>",
	"c10::complex<float>",
	"c10::complex<double>",
	"bool",
	"c10::qint8",
	"c10::quint8",
	"c10::qint32",
	"c10::BFloat16",
	"c10::quint4x2",
	"c10::quint2x4",
	"c10::bits1x8",
	"c10::bits2x4",
	"c10::bits4x2",
	"c10::bits8",
	"c10::bits16",
	"c10::Float8_e5m2",
	"c10::Float8_e4m3fn",
	"c10::Float8_e5m2fnuz",
	"c10::Float8_e4m3fnuz",
	"short unsigned int",
	"unsigned int",
	"long unsigned int",
};

/* Layouts of 2.13 and 2.1. */
static const struct adp_storage storages[] = {{0xa8, 0x10}, {0xb8, 0x18}, {0, 0}};

static const struct adp_build builds[] = {
	{"b7066ed94f422786bd205cd2743c2722b5f366fd", "2.13.0 (CPU)"},
};

/* A thread of a process group runs a collective from its queue; others wait for it. */
static const char *const collective_functions[] = {"AsyncWork::execute", "Work::wait", "AsyncWork::run", NULL};
static const char *const collective_names[][2] = {
	{"AllreduceCoalesced", "all_reduce_coalesced"},
	{"Allreduce", "all_reduce"},
	{"AllgatherCoalesced", "all_gather_coalesced"},
	{"Allgather", "all_gather"},
	{"Alltoall", "all_to_all"},
	{"ReduceScatter", "reduce_scatter"},
	{"Broadcast", "broadcast"},
	{"Barrier", "barrier"},
	{"Gather", "gather"},
	{"Scatter", "scatter"},
	{"Reduce", "reduce"},
	{"SendWork", "send"},
	{"RecvWork", "recv"},
	{NULL, NULL},
};

const struct adp adapter_pytorch = {
	.name = "pytorch",
	.title = "PyTorch",
	.lib_glob = "libtorch_cpu.so*",
	.probes = probes,
	.nprobes = COUNT(probes),
	.devices = devices,
	.ndevices = COUNT(devices),
	.builds = builds,
	.nbuilds = COUNT(builds),
	.class_title = {[MXBPF_CLASS_OPERATOR] = "operator", [MXBPF_CLASS_KERNEL] = "compiled kernel"},
	.mem_title = "memory",
	.iteration_title = "the step() of an optimizer",
	.trace_form = "kineto",
	.rank_env = "RANK",
	.world_size_env = "WORLD_SIZE",
	.meet_env = {"MASTER_ADDR", "MASTER_PORT"},
	.seq = {"_ZN2at15sequence_number4peekEv", "_ZN2at14RecordFunction15currentThreadIdEv"},
	.args = {types, dtypes, COUNT(dtypes), "_ZN2at4_ops2mm4callERKNS_6TensorES4_", "libc10.so*",
		 "_ZN3c1019UndefinedTensorImpl10_singletonE", storages},
	.hidden = hidden,
	.lenders = lenders,
	.object_scope = "torch::autograd::generated::",
	.module_file = "torch/nn/modules/module.py", /* of nn.Module */
	.agent = {{STEP_CALLBACKS},
		  "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
		  "_ZN2at14removeCallbackEm",
		  "_ZNK2at14RecordFunction4nameEv",
		  "_ZN2at16getStepCallbacksENS_11RecordScopeE",
		  "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE",
		  {"_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEE"
		   "St17reference_wrapperIKN3c1014FunctionSchemaEEEEl",
		   "_ZN2at14RecordFunction6beforeEPKcl"},
		  {RUN_RECORD "NS_14DispatchKeySetENS_8ArrayRefIKNS_6IValueEEE",
		   RUN_RECORD "NS_8ArrayRefIKNS_6IValueEEE"},
		  "_ZNK3c106IValue12isTensorListEv",
		  "libc10.so*",
		  "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm",
		  "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv",
		  {REPORT_SYMBOLS},
		  {"_ZN2at14clearCallbacksEv", "_ZN2at20clearGlobalCallbacksEv"}},
	.collective = {collective_functions,
		       "N4c10d",
		       "Work",
		       collective_names,
		       {"_ZNK4c10d16ProcessGroupGloo9AsyncWork17getSequencenumberEv",
			"_ZNK4c10d16ProcessGroupGloo8SendWork17getSequencenumberEv",
			"_ZNK4c10d16ProcessGroupGloo8RecvWork17getSequencenumberEv"},
		       /* The block of a shared pointer, which has the object 16 bytes on; its rank is 8 bytes on. */
		       "St23_Sp_counted_ptr_inplaceIN4gloo",
		       "Context",
		       24,
		       adapter_pytorch_queues},
};
