// SPDX-License-Identifier: Apache-2.0
/*
 * Where PyTorch's process groups for NCCL keep the works that a GPU has not done yet: those of nccl2, which is the
 * default from 2.15 on, and those of the older class.
 */
#include "adapter/adapter.h"

#include <stddef.h>

#define CPU_LIBRARY  "libtorch_cpu.so*"
#define CUDA_LIBRARY "libtorch_cuda.so*"
#define GROUP_2	     "_ZN4c10d5nccl216ProcessGroupNCCL"
#define GROUP_1	     "_ZN4c10d16ProcessGroupNCCL"
#define TIMEOUT	     "ESt8optionalINSt6chrono8durationIlSt5ratioILl1ELl1000EEEEE"
#define RETIRE	     "_ZN4c10d18FlightRecorderHook15retireCompletedEmSt8optionalIfE"
#define STEADY_NOW   "_ZNSt6chrono3_V212steady_clock3nowEv"

#define IN_CPU(SYMBOL, HOW, OF)                                                                                        \
	{                                                                                                              \
		SYMBOL, CPU_LIBRARY, HOW, OF                                                                           \
	}
#define IN_CUDA(SYMBOL, HOW, OF)                                                                                       \
	{                                                                                                              \
		SYMBOL, CUDA_LIBRARY, HOW, OF                                                                          \
	}

/* clang-format off */
/* By c10d::OpType. */
static const char *const work_ops[] = {
	"broadcast", "all_reduce", "all_reduce_coalesced", "reduce", "all_gather", "all_gather", "all_gather_coalesced",
	"gather", "scatter", "reduce_scatter", "all_to_all", "all_to_all", "send", "recv", "recv", "barrier",
	"reduce_scatter", "coalesced", "all_reduce", "reduce_scatter", "all_gather", NULL,
};

/* By c10d::HookOpName. */
static const char *const hook_ops[] = {
	"send", "recv", "broadcast", "all_reduce", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier",
	"scatter", "gather", "", "", "all_reduce_coalesced", "all_gather", "all_gather_coalesced", "all_gather",
	"reduce_scatter", "reduce_scatter", "all_to_all", NULL,
};
/* clang-format on */

const struct adp_queue adapter_pytorch_queues[] = {
	{
		.function = "nccl2::ProcessGroupNCCL::timeoutWatchdog",
		.group = "N4c10d5nccl216ProcessGroupNCCLE",
		.work = "St23_Sp_counted_ptr_inplaceIN4c10d5nccl28WorkNCCL5StateE",
		.streams = true,
		.done = 2,
		.recorder = "St15_Sp_counted_ptrIPN4c10d18FlightRecorderHookE",
		.ops = hook_ops,
		.at = {[QUEUE_AT] = IN_CUDA(GROUP_2 "14checkWorkQueueEv", MEMBERS_FIRST,
					    "_ZN4c10d5nccl213WorkNCCLQueue14garbageCollectEv"),
		       [QUEUE_RANK] = IN_CPU("_ZN4c10d7BackendC2Eii", MEMBERS_STORED, NULL),
		       [QUEUE_NAME] = IN_CUDA("_ZN4c10d5nccl217getCommNamePrefixINS0_16ProcessGroupNCCLEEENSt7__"
					      "cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPT_",
					      MEMBERS_TEXT, NULL),
		       [QUEUE_NUMBER] = IN_CUDA("_ZNK4c10d5nccl28WorkNCCL17getSequencenumberEv", MEMBERS_BEHIND, NULL),
		       [QUEUE_SINCE] = IN_CUDA("_ZN4c10d5nccl28WorkNCCL5State11checkStatus" TIMEOUT, MEMBERS_SUBTRACTED,
					       STEADY_NOW),
		       [QUEUE_STATUS] = IN_CUDA("_ZNK4c10d5nccl28WorkNCCL5State6statusEv", MEMBERS_RETURNED, NULL),
		       /* A work does not say its operation. PyTorch's flight recorder does, which is on by default. */
		       [QUEUE_KEY] = IN_CUDA("_ZNK4c10d5nccl28WorkNCCL16getCompletionKeyEv", MEMBERS_BEHIND, NULL),
		       [QUEUE_HOOKS] = IN_CUDA(GROUP_2 "18hasCompletionHooksEv", MEMBERS_TESTED, NULL),
		       [QUEUE_RECORDED] = IN_CPU(RETIRE, MEMBERS_TESTED, NULL),
		       [QUEUE_CALLS] = IN_CPU(RETIRE, MEMBERS_SECOND, "_ZSt28_Rb_tree_rebalance_for_erase"),
		       [QUEUE_CALL_OP] = IN_CPU(RETIRE, MEMBERS_BYTE, "_ZN4c10d12_GLOBAL__N_110hookOpName")},
	},
	{
		.function = "ProcessGroupNCCL::Watchdog::runLoop",
		.group = "N4c10d16ProcessGroupNCCLE",
		.via = "N4c10d16ProcessGroupNCCL8WatchdogE",
		.work = "N4c10d16ProcessGroupNCCL8WorkNCCLE",
		.ops = work_ops,
		.at = {[QUEUE_AT] = IN_CUDA(GROUP_1 "11workEnqueueERKN3c1013intrusive_ptrINS0_8WorkNCCLENS1_6detail34"
						    "intrusive_target_default_null_typeIS3_EEEE",
					    MEMBERS_SECOND, "_ZNSt8__detail15_List_node_base7_M_hook"),
		       [QUEUE_RANK] = IN_CPU("_ZN4c10d7BackendC2Eii", MEMBERS_STORED, NULL),
		       [QUEUE_NUMBER] = IN_CUDA("_ZNK4c10d16ProcessGroupNCCL8WorkNCCL17getSequencenumberEv",
						MEMBERS_RETURNED, NULL),
		       [QUEUE_SINCE] = IN_CUDA("_ZN4c10d16ProcessGroupNCCL8WorkNCCL12checkTimeout" TIMEOUT,
					       MEMBERS_SUBTRACTED, STEADY_NOW),
		       [QUEUE_OP] = IN_CPU("_ZNK4c10d4Work14retrieveOpTypeEv", MEMBERS_RETURNED, NULL)},
	},
	{.function = NULL},
};
