#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes abi.txt: sizes and offsets of CUPTI's records, and values of its constants, in each release from 11.0 to the newest.

usage: abi.py [CACHE]     CACHE keeps the wheels between runs; default build/deps/cupti
It downloads NVIDIA's wheels, compiles a program with the headers of each, and runs it. It needs pip and a C compiler. The
wheels begin with 11.7. The headers of 11.7 also have the records of the releases before it, and say since when each is
replaced; the rows of 11.0 to 11.6 are made of these and have the source "header of 11.7".
"""
import os
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
CUDA_H = "nvidia-cuda-runtime==13.0.96"  # for the types of cuda.h
WHEELS = ("cu11==11.7.101", "cu11==11.8.87", "cu12==12.0.146", "cu12==12.1.105", "cu12==12.2.142", "cu12==12.3.101",
          "cu12==12.4.127", "cu12==12.5.82", "cu12==12.6.80", "cu12==12.8.90", "cu12==12.9.19", "cu12==12.9.79", "==13.0.48",
          "==13.0.85", "==13.1.115", "==13.2.86", "==13.3.75", "==13.4.92", "==13.5.25")

HEADERS = ("activity", "callbacks", "driver_cbid", "runtime_cbid", "version")

FIELDS = {
    "Kernel": "kind registersPerThread start end completed deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ "
              "staticSharedMemory dynamicSharedMemory correlationId gridId name graphNodeId graphId",
    "Memcpy": "kind copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId graphNodeId graphId",
    "MemcpyPtoP": "kind copyKind srcKind dstKind flags bytes start end deviceId contextId streamId srcDeviceId srcContextId "
                  "dstDeviceId dstContextId correlationId graphNodeId graphId",
    "Memset": "kind value bytes start end deviceId contextId streamId correlationId flags memoryKind graphNodeId graphId",
    "API": "kind cbid start end processId threadId correlationId returnValue",
    "Synchronization": "kind type start end correlationId contextId streamId cudaEventId",
    "Overhead": "kind overheadKind objectKind objectId start end correlationId",
    "GraphTrace": "kind correlationId start end deviceId graphId contextId streamId",
    "Device": "kind",
}
# Records that releases before 11.7 wrote, by the dates in the comments of 11.7's headers; 11.6 introduced those of 11.7.
OLD = {
    "11.0": (13, {"Kernel": 5, "Memcpy": 3, "MemcpyPtoP": 2, "Memset": 2, "Device": 3}),
    "11.1": (14, {"Kernel": 5, "Memcpy": 4, "MemcpyPtoP": 3, "Memset": 3, "Device": 3}),
    "11.2": (15, {"Kernel": 6, "Memcpy": 4, "MemcpyPtoP": 3, "Memset": 3, "Device": 3}),
    "11.5": (16, {"Kernel": 6, "Memcpy": 4, "MemcpyPtoP": 3, "Memset": 3, "Device": 3}),
    "11.6": (17, {}),
}
VALUES = """CUPTI_SUCCESS CUPTI_ERROR_MAX_LIMIT_REACHED CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED CUPTI_ERROR_NOT_COMPATIBLE
CUPTI_ERROR_NOT_INITIALIZED CUPTI_ERROR_INVALID_KIND CUPTI_ERROR_INSUFFICIENT_PRIVILEGES CUPTI_ACTIVITY_KIND_MEMCPY
CUPTI_ACTIVITY_KIND_MEMSET CUPTI_ACTIVITY_KIND_DRIVER CUPTI_ACTIVITY_KIND_RUNTIME CUPTI_ACTIVITY_KIND_DEVICE
CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL CUPTI_ACTIVITY_KIND_OVERHEAD CUPTI_ACTIVITY_KIND_MEMCPY2
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION CUPTI_CB_DOMAIN_DRIVER_API CUPTI_CB_DOMAIN_RUNTIME_API
CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM CUPTI_ACTIVITY_FLAG_FLUSH_FORCED CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000
CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000 CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch
CUPTI_ACTIVITY_KIND_GRAPH_TRACE CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060 CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx""".split()
# Of the range profiler, which CUDA 12.6 brought. The headers are written for C++ in that they include <string>.
PROFILER_HEADERS = ("target", "profiler_target", "profiler_host", "range_profiler")
PROFILER = {
    "CUpti_CallbackData": "callbackSite functionName functionParams functionReturnValue symbolName context contextUid "
                          "correlationData correlationId",
    "CUpti_Device_GetChipName_Params": "structSize deviceIndex pChipName",
    "CUpti_Profiler_Initialize_Params": "structSize pPriv",
    "CUpti_Profiler_DeviceSupported_Params": "structSize cuDevice isSupported architecture sli vGpu confidentialCompute cmp wsl api",
    "CUpti_Profiler_Host_Initialize_Params": "structSize profilerType pChipName pCounterAvailabilityImage pHostObject",
    "CUpti_Profiler_Host_Deinitialize_Params": "structSize pHostObject",
    "CUpti_Profiler_Host_ConfigAddMetrics_Params": "structSize pHostObject ppMetricNames numMetrics",
    "CUpti_Profiler_Host_GetConfigImageSize_Params": "structSize pHostObject configImageSize",
    "CUpti_Profiler_Host_GetConfigImage_Params": "structSize pHostObject configImageSize pConfigImage",
    "CUpti_Profiler_Host_GetNumOfPasses_Params": "structSize configImageSize pConfigImage numOfPasses",
    "CUpti_Profiler_Host_EvaluateToGpuValues_Params": "structSize pHostObject pCounterDataImage counterDataImageSize rangeIndex "
                                                      "ppMetricNames numMetrics pMetricValues",
    "CUpti_RangeProfiler_Enable_Params": "structSize ctx pRangeProfilerObject",
    "CUpti_RangeProfiler_Disable_Params": "structSize pRangeProfilerObject",
    "CUpti_RangeProfiler_Start_Params": "structSize pRangeProfilerObject",
    "CUpti_RangeProfiler_SetConfig_Params": "structSize pRangeProfilerObject configSize pConfig counterDataImageSize "
                                            "pCounterDataImage range replayMode maxRangesPerPass numNestingLevels minNestingLevel "
                                            "passIndex targetNestingLevel",
    "CUpti_RangeProfiler_Stop_Params": "structSize pRangeProfilerObject passIndex targetNestingLevel isAllPassSubmitted",
    "CUpti_RangeProfiler_DecodeData_Params": "structSize pRangeProfilerObject numOfRangeDropped",
    "CUpti_RangeProfiler_GetCounterDataSize_Params": "structSize pRangeProfilerObject pMetricNames numMetrics maxNumOfRanges "
                                                     "maxNumRangeTreeNodes counterDataSize",
    "CUpti_RangeProfiler_CounterDataImage_Initialize_Params": "structSize pRangeProfilerObject counterDataSize pCounterData",
    "CUpti_RangeProfiler_GetCounterDataInfo_Params": "structSize pCounterDataImage counterDataImageSize numTotalRanges",
}
PROFILER_VALUES = """CUPTI_AutoRange CUPTI_KernelReplay CUPTI_PROFILER_TYPE_RANGE_PROFILER CUPTI_PROFILER_CONFIGURATION_SUPPORTED
CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz
CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz
CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz""".split()
PARAMS = "structSize subscriberName oldSubscriberName oldSubscriberSize allowMultipleSubscribers"


def wheel(cache, what):
    """Returns the path of a wheel, after downloading it unless the cache has it."""
    name, version = what.split("==")
    stem = f"{name.replace('-', '_')}-{version}-"

    def cached():
        return [os.path.join(cache, f) for f in sorted(os.listdir(cache)) if f.startswith(stem)]
    if not cached():
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", cache, what], check=True)
    return cached()[0]


def unpack(path, directory):
    """Unpacks the headers of a wheel. Returns the directory that has them."""
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if n.endswith(".h")]
        archive.extractall(directory, names)
    found = min((n for n in names if os.path.basename(n) in ("cupti_activity.h", "cuda.h")), key=len)
    include = os.path.join(directory, os.path.dirname(found))
    # The types of the runtime need a compiler's headers, and CUPTI's records need none of them.
    if found.endswith("cuda.h"):
        for name in ("builtin_types.h", "string"):
            with open(os.path.join(include, name), "w"):
                pass
    return include


def text_of(include):
    """Returns the text of CUPTI's headers without comments."""
    text = ""
    for name in sorted(os.listdir(include)):
        if name.startswith("cupti_"):
            with open(os.path.join(include, name), errors="replace") as file:
                text += file.read()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structs(text):
    """Returns the text of each struct of records, by (family, version)."""
    found = {}
    pattern = r"typedef struct(?: PACKED_ALIGNMENT)? \{((?:(?!typedef struct).)*?)\}\s*CUpti_Activity([A-Za-z]+?)(\d*)\s*;"
    for match in re.finditer(pattern, text, re.S):
        found[match[2], int(match[3] or 1)] = match[1]
    return found


def rows(name, fields, text):
    """Returns statements that print the row of a struct. text: its declaration"""
    return [f'printf("{name} %zu", sizeof({name}));',
            *(f'printf(" {field}=%zu", offsetof({name}, {field}));' for field in fields.split()
              if re.search(rf"\b{field}\s*;", text)),
            'puts("");']


def program(chosen, text):
    profiler = "CUpti_RangeProfiler_Enable_Params" in text
    headers = HEADERS + (PROFILER_HEADERS if profiler else ())
    lines = ["#include <stdbool.h>", "#include <stdio.h>", "#include <stddef.h>", *(f"#include <cupti_{name}.h>" for name in headers), "int main(void) {"]
    for (family, version), declaration in chosen:
        lines += rows(f"CUpti_Activity{family}{version if version > 1 else ''}", FIELDS[family], declaration)
    if "CUpti_SubscriberParams" in text:
        lines += rows("CUpti_SubscriberParams", PARAMS, text)
    for name, fields in PROFILER.items() if profiler else ():
        lines += rows(name, fields, text)
    lines += [f'printf("{value} %ld\\n", (long){value});' for value in PROFILER_VALUES if profiler]
    lines += [f'printf("{value} %ld\\n", (long){value});' for value in VALUES if re.search(rf"\b{value}\b", text)]
    return "\n".join(lines + ['printf("CUPTI_API_VERSION %d\\n", CUPTI_API_VERSION);', "return 0;", "}"]) + "\n"


def run(source, includes, directory):
    path = os.path.join(directory, "abi")
    flags = [f"-I{include}" for include in includes]
    subprocess.run(["cc", "-w", "-x", "c", *flags, "-o", path, "-"], input=source, text=True, check=True)
    return subprocess.run([path], capture_output=True, text=True, check=True).stdout.splitlines()


def rows_of(include, cuda_include, directory, old=None):
    """Returns (API version, lines) of a release. old: {family: version} that differ from the newest."""
    text = text_of(include)
    found = structs(text)
    chosen = []
    for family in FIELDS:
        newest = max(version for f, version in found if f == family)
        version = (old or {}).get(family, newest)
        chosen.append(((family, version), found[family, version]))
    lines = run(program(chosen, text), [include, cuda_include], directory)
    return lines[-1].split()[1], lines[:-1]


def write(file, release, version, source, lines, before):
    """Writes the rows that differ from those of the release before, {name without version: row}."""
    file.write(f"\nrelease {release} {version} {source}\n")
    for line in lines:
        name = re.sub(r"(CUpti_\w*?)\d* .*", r"\1", line)
        if before.get(name) != line:
            file.write(line + "\n")
        before[name] = line


def main():
    cache = sys.argv[1] if len(sys.argv) > 1 else os.path.join("build", "deps", "cupti")
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, open(os.path.join(HERE, "abi.txt"), "w") as file:
        cuda_include = unpack(wheel(cache, CUDA_H), os.path.join(directory, "cuda"))
        file.write("# Made by tests/gpu/abi.py from NVIDIA's headers. release NAME CUPTI_API_VERSION SOURCE, then its rows:\n"
                   "# STRUCT BYTES FIELD=OFFSET... (the version of each struct that the release writes), or CONSTANT VALUE.\n"
                   "# Rows that are the same as in the release before are left out. The rows of 11.0 to 11.6 come from the\n"
                   "# header of 11.7, which names the records that its predecessors wrote.\n")
        before = {}
        for i, what in enumerate(WHEELS):
            release = what.split("==")[1]
            path = wheel(cache, "nvidia-cuda-cupti" + ("-" if what[0] == "c" else "") + what)
            include = unpack(path, os.path.join(directory, release))
            if not i:
                for name, (version, old) in OLD.items():
                    write(file, name, version, "header of 11.7", rows_of(include, cuda_include, directory, old)[1], before)
            version, lines = rows_of(include, cuda_include, directory)
            write(file, release, version, "wheel", lines, before)


if __name__ == "__main__":
    main()
