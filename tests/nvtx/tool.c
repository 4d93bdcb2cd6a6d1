// SPDX-License-Identifier: Apache-2.0
/* A tool for NVTX that counts pushes and pops of the first library, and writes the counts to the file TOOL_OUT at the
 * end. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static int pushes, pops;

static int push(void)
{
	return __sync_fetch_and_add(&pushes, 1);
}

static int pop(void)
{
	return __sync_fetch_and_add(&pops, 1);
}

int InitializeInjectionNvtx2(const void *(*get)(uint32_t table))
{
	const NvtxExportTableCallbacks *c = get(NVTX_ETID_CALLBACKS);
	NvtxFunctionTable table;
	unsigned n;

	if (!c->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &n))
		return 0;
	*table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	*table[NVTX_CBID_CORE_RangePushEx] = (NvtxFunctionPointer)push;
	*table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	return 1;
}

__attribute__((destructor)) static void end(void)
{
	FILE *f = fopen(getenv("TOOL_OUT"), "w");

	if (f) {
		fprintf(f, "pushes %d pops %d\n", pushes, pops);
		fclose(f);
	}
}
