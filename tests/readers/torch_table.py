#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table that torch.profiler makes of the events in a trace of the form kineto, by torch's own code.

  torch_table.py TRACE SORT_BY

Kineto hands over the operators, and what ran on a GPU with the id of the operator that launched it. torch nests the operators and
adds up the rest. Annotations launch nothing themselves, and torch's table has no calls of CUDA if only the GPU was profiled.
"""
import json
import sys

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

ON_CPU, ON_GPU = ('cpu_op', 'user_annotation'), ('kernel', 'gpu_memcpy', 'gpu_memset')


def function_event(e, device_type):
    return FunctionEvent(id=e['args'].get('External id', 0), name=e['name'], thread=e['tid'], start_us=e['ts'],
                         end_us=e['ts'] + e['dur'], input_shapes=[], stack=[], use_device='cuda', device_type=device_type,
                         device_index=e['args'].get('device', 0), is_user_annotation=e['cat'] == 'user_annotation')


def main():
    with open(sys.argv[1]) as f:
        events = [e for e in json.load(f)['traceEvents'] if e['ph'] == 'X']
    on_cpu = [function_event(e, DeviceType.CPU) for e in events if e['cat'] in ON_CPU]
    on_gpu = [function_event(e, DeviceType.CUDA) for e in events if e['cat'] in ON_GPU]
    operators = {e.id: e for e in on_cpu if not e.is_user_annotation}
    for e in on_gpu:
        if e.id in operators:
            operators[e.id].append_kernel(e.name, e.device_index, e.time_range.elapsed_us())
    everything = EventList(sorted(on_cpu + on_gpu, key=lambda e: [e.time_range.start, -e.time_range.end]), use_device='cuda',
                           profile_memory=False)
    everything._build_tree()
    print(everything.key_averages().table(sort_by=sys.argv[2], row_limit=-1))


main()
