// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges and marks of NVTX, shared by all runtimes. The program calls functions that libnvToolsExt or libnvtx3interop
 * export, or functions that NVIDIA's headers define in each library. The former are probed. The latter can be seen only
 * if a tool was there at the library's first call: mxbpf's own injection library (user/nvtx/lib/), which calls a
 * function with a name of mxbpf for each event.
 */
#include "adapter/adapter.h"

/* "/memfd:mxbpf/libnvtx.so" is the injection library. */
#define LIBS .each_lib = "*/libnv[Tt]*.so*"
#define MEMBER(f)                                                                                                      \
	{                                                                                                              \
#f, #f                                                                                                 \
	}
#define SHARED .group = PROBE_MARK, .always = adp_all, .optional = true, .any_build = true, .beside = true
#define RANGE                                                                                                          \
	.action = MXBPF_ACT_OPEN, .cls = MXBPF_CLASS_EVENT, .span_flags = MXBPF_SPAN_USER,                             \
	.name_type = MXBPF_NAMED_BYTES, .details = MXBPF_DETAIL_STACK
#define PUSHED RANGE, .end = MXBPF_END_PAIR, .unscoped = 1
#define POPPED .action = MXBPF_ACT_CLOSE_PAIR, .cls = MXBPF_CLASS_EVENT, .unscoped = 1
/* Pushed ranges: their domain, which has a stack of its own (0: none). Others: their number. */
#define KEY(arg)   .key = {.base = MXBPF_BASE_##arg}
#define TITLE	   .title = "NVTX range"
#define EVENT(arg) .range = {.base = MXBPF_BASE_##arg}, .range_from = MXBPF_RANGE_FROM_EVENT
#define INFO(arg)  .range = {.base = MXBPF_BASE_##arg}, .range_from = MXBPF_RANGE_FROM_INFO

/*
 * A range's name in the structure of an event (nvtxEventAttributes_t). The pointer leads to the text, also if it is a
 * string that was registered with the injection library. Without a tool, a registered string is NULL.
 */
#define AT_MESSAGE .nderef = 1, .off = {40}

/* A name of wide characters is cut after the first one, if that is of ASCII. */
static const struct adp_member pushes[] = {MEMBER(nvtxRangePushA), MEMBER(nvtxRangePushW), {NULL, NULL}};
static const struct adp_member pushes_info[] = {MEMBER(mxbpf_nvtx_push), {NULL, NULL}};
static const struct adp_member pushes_ex[] = {MEMBER(nvtxRangePushEx), {NULL, NULL}};
static const struct adp_member pushes_domain[] = {MEMBER(nvtxDomainRangePushEx), {NULL, NULL}};
static const struct adp_member pops[] = {MEMBER(nvtxRangePop), {NULL, NULL}};
static const struct adp_member pops_domain[] = {MEMBER(nvtxDomainRangePop), {NULL, NULL}};
static const struct adp_member pops_info[] = {MEMBER(mxbpf_nvtx_pop), {NULL, NULL}};
static const struct adp_member starts[] = {MEMBER(mxbpf_nvtx_start), {NULL, NULL}};
static const struct adp_member ends[] = {MEMBER(mxbpf_nvtx_end), {NULL, NULL}};
static const struct adp_member marks[] = {MEMBER(mxbpf_nvtx_mark), {NULL, NULL}};

/* Rows that end ranges come first, so no range is open whose end is not probed yet. */
const struct adp_probe adapter_nvtx[] = {
	{.name = "nvtx.pop", LIBS, SHARED, .family = {.members = pops}, .row = {POPPED}},
	{.name = "nvtx.pop_domain", LIBS, SHARED, .family = {.members = pops_domain}, .row = {POPPED, KEY(ARG1)}},
	{.name = "nvtx.pop_info",
	 LIBS,
	 SHARED,
	 .family = {.members = pops_info},
	 .row = {POPPED, INFO(ARG1), KEY(ARG2)}},
	{.name = "nvtx.end",
	 LIBS,
	 SHARED,
	 .family = {.members = ends},
	 .row = {.action = MXBPF_ACT_CLOSE_KEY, .cls = MXBPF_CLASS_EVENT, KEY(ARG1), INFO(ARG2)}},
	{.name = "nvtx.push",
	 LIBS,
	 SHARED,
	 TITLE,
	 .family = {.members = pushes},
	 .row = {PUSHED, .name = {.base = MXBPF_BASE_ARG1}, .range = {.base = MXBPF_BASE_ARG1},
		 .range_from = MXBPF_RANGE_FROM_NAME}},
	{.name = "nvtx.push_info",
	 LIBS,
	 SHARED,
	 TITLE,
	 .family = {.members = pushes_info},
	 .row = {PUSHED, .name = {.base = MXBPF_BASE_ARG1}, INFO(ARG2), KEY(ARG3)}},
	{.name = "nvtx.push_ex",
	 LIBS,
	 SHARED,
	 TITLE,
	 .family = {.members = pushes_ex},
	 .row = {PUSHED, .name = {.base = MXBPF_BASE_ARG1, AT_MESSAGE}, EVENT(ARG1)}},
	{.name = "nvtx.push_domain",
	 LIBS,
	 SHARED,
	 TITLE,
	 .family = {.members = pushes_domain},
	 .row = {PUSHED, .name = {.base = MXBPF_BASE_ARG2, AT_MESSAGE}, EVENT(ARG2), KEY(ARG1)}},
	/* (name, number, info). Such ranges may overlap, and end on another thread. */
	{.name = "nvtx.start",
	 LIBS,
	 SHARED,
	 TITLE,
	 .family = {.members = starts},
	 .row = {RANGE, .end = MXBPF_END_KEY, .name = {.base = MXBPF_BASE_ARG1}, KEY(ARG2), INFO(ARG3)}},
	/* (domain, name, scope, info) */
	{.name = "nvtx.mark",
	 LIBS,
	 SHARED,
	 .family = {.members = marks},
	 .row = {.action = MXBPF_ACT_MARK_INSTANT, INFO(ARG4)}},
	{.name = NULL},
};
