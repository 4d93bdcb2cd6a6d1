/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of names of functions of MXNet that are too long for its table. */
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

#endif
