#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the table that torch.profiler makes of the events in a trace of the form kineto, by torch's own code.

  torch_table.py TRACE SORT_BY [TABLE]

TABLE: prints nothing, and fails if this table differs. Its rows can be in another order. torch adds up fractions of microseconds,
so numbers can differ by one in their last digit.

Kineto hands over the operators, and what ran on a GPU with the id of the operator that launched it. torch nests the operators and
adds up the rest. Annotations launch nothing themselves, and torch's table has no calls of CUDA if only the GPU was profiled.
"""
import decimal
import json
import re
import sys

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

ON_CPU, ON_GPU = ('cpu_op', 'user_annotation'), ('kernel', 'gpu_memcpy', 'gpu_memset')


def function_event(e, device_type):
    return FunctionEvent(id=e['args'].get('External id', 0), name=e['name'], thread=e['tid'], start_us=e['ts'],
                         end_us=e['ts'] + e['dur'], input_shapes=[], stack=[], use_device='cuda', device_type=device_type,
                         device_index=e['args'].get('device', 0), is_user_annotation=e['cat'] == 'user_annotation')


def cells(table):
    """The words of each line: numbers as their digits and their unit."""
    return sorted([re.fullmatch(r'(-?[0-9.]*)(.*)', word).groups() for word in re.split(' {2,}|: ', line.strip())]
                  for line in table.splitlines() if line.strip())


def same(a, b):
    if a == b or a[1] != b[1] or '.' not in a[0] + b[0]:
        return a == b
    a, b = decimal.Decimal(a[0]), decimal.Decimal(b[0])
    return abs(a - b) <= decimal.Decimal(1).scaleb(a.as_tuple().exponent)


def compare(theirs, ours):
    theirs, ours = cells(theirs), cells(ours)
    if len(theirs) != len(ours):
        sys.exit('torch has %d lines, not %d' % (len(theirs), len(ours)))
    differ = ['torch: %r\n   not: %r' % lines for lines in zip(theirs, ours)
              if len(lines[0]) != len(lines[1]) or not all(map(same, *lines))]
    if differ:
        sys.exit('\n'.join(differ))


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
    table = everything.key_averages().table(sort_by=sys.argv[2], row_limit=-1)
    if len(sys.argv) == 3:
        return print(table)
    with open(sys.argv[3]) as f:
        compare(table, f.read())


main()
