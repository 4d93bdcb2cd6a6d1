#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a section of ../judge_torch/programs.py under torch.profiler with stacks, and writes [name, stack] of each operator as
JSON, in order of start.

usage: torch_builtin.py PROGRAM OUT
"""
import gc
import json
import os
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'judge_torch'))

import torch  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)
program = PROGRAMS[sys.argv[1]]()
for _ in range(4):
    program.section()
gc.collect()
gc.disable()
with profile(activities=[ProfilerActivity.CPU], with_stack=True,
             experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True)) as p:
    program.section()
events = sorted(p.events(), key=lambda e: (e.time_range.start, -e.time_range.end))
with open(sys.argv[2], 'w') as f:
    json.dump([[e.name, e.stack] for e in events], f)
