/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions of MXNet: parts that are too long for its table, and lists. */
#ifndef ADAPTER_MXNET_NAMES_H
#define ADAPTER_MXNET_NAMES_H

/*
 * mxnet::imperative::PushFCompute, PushFComputeEx and PushOperator, without "_Z". Their first six arguments differ. On
 * the stack follow resources, inputs and outputs, which are vectors of addresses of arrays.
 */
#define PUSH_FCOMPUTE                                                                                                  \
	"N5mxnet10imperative12PushFComputeERKSt8functionIFvRKN4nnvm9NodeAttrsERKNS_9OpContextERKSt6vectorINS_"         \
	"5TBlobESaISA_EERKS9_INS_9OpReqTypeESaISF_EESE_EEPKNS2_2OpES5_RKNS_7ContextERKS9_IPNS_6engine3VarESaI"         \
	"SW_EES10_RKS9_INS_8ResourceESaIS11_EERKS9_IPNS_7NDArrayESaIS17_EES1B_RKS9_IjSaIjEESJ_"
#define PUSH_FCOMPUTE_EX                                                                                               \
	"N5mxnet10imperative14PushFComputeExERKSt8functionIFvRKN4nnvm9NodeAttrsERKNS_9OpContextERKSt6vectorIN"         \
	"S_7NDArrayESaISA_EERKS9_INS_9OpReqTypeESaISF_EESE_EEPKNS2_2OpES5_RKNS_7ContextERKS9_IPNS_6engine3Var"         \
	"ESaISW_EES10_RKS9_INS_8ResourceESaIS11_EERKS9_IPSA_SaIS16_EES1A_SJ_"
#define PUSH_OPERATOR                                                                                                  \
	"N5mxnet10imperative12PushOperatorERKNS_10OpStatePtrEPKN4nnvm2OpERKNS4_9NodeAttrsERKNS_7ContextERKSt6"         \
	"vectorIPNS_6engine3VarESaISH_EESL_RKSE_INS_8ResourceESaISM_EERKSE_IPNS_7NDArrayESaISS_EESW_RKSE_IjSa"         \
	"IjEERKSE_INS_9OpReqTypeESaIS11_EENS_12DispatchModeE"

/*
 * The C API calls that do work or wait, out of 260. The others are getters, setters and frees of handles: 84 of the 98
 * calls of a training step. Each call here passes its own name to on_enter_api. Calls that only pass on to another one
 * are left out. So is MXInvokeCachedOpEx, whose span of the pair begins when its MXInvokeCachedOp has done the work,
 * and the KVStore calls, which have a table of their own.
 */
/* clang-format off */
static const char *const work[] = {
	"MXNetFuncCall", "MXImperativeInvoke", "MXImperativeInvokeEx", "MXInvokeCachedOp", "MXCreateCachedOpEx",
	"MXAutogradBackwardEx", "MXExecutorForward", "MXExecutorBackwardEx", "MXNDArrayWaitToRead", "MXNDArrayWaitToWrite",
	"MXNDArrayWaitAll", "MXNDArraySyncCopyToCPU", "MXNDArraySyncCopyFromCPU", "MXNDArraySyncCopyFromNDArray",
	"MXNDArraySyncCheckFormat", "MXNDArrayGetData", "MXNDArrayGetDataNDArray", "MXNDArrayGetAuxNDArray",
	"MXNDArrayCreateFromSharedMem", "MXNDArrayCreateFromSharedMemEx", /* show how long a loader's batch was waited for */
	"MXNDArrayGetSharedMemHandle", "MXNDArraySave", "MXNDArrayLoad", "MXNDArraySaveRawBytes", "MXPredForward",
	"MXNotifyShutdown", NULL,
};
/* clang-format on */

/* Those of them that wait for the engine. */
static const char *const waits[] = {
	"MXNDArrayWaitToRead",
	"MXNDArrayWaitToWrite",
	"MXNDArrayWaitAll",
	"MXNDArraySyncCopyToCPU",
	"MXNDArrayCreateFromSharedMem",
	"MXNDArrayCreateFromSharedMemEx",
	NULL,
};

/* Calls of C++ iterators, with a table of their own. Python's (NDArrayIter, DataLoader) do not call the library. */
static const char *const data[] = {"MXDataIterNext", "MXDataIterBeforeFirst", NULL};

#endif
