#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a trace into HolisticTraceAnalysis and prints, as one JSON object, what it makes of it.

  read_hta.py TRACE

`slices`: calls by category and name. `steps`: their numbers, and the names of the operators in each. `analyses`: of each one
"ok" or the exception that it raised; those of GPUs raise on any trace without one, torch's own too.
"""
import collections
import json
import logging
import os
import sys
import warnings

from hta.trace_analysis import TraceAnalysis

ANALYSES = {
    'steps': lambda t: t.get_profiler_steps(),
    'temporal breakdown': lambda t: t.get_temporal_breakdown(visualize=False),
    'idle time': lambda t: t.get_idle_time_breakdown(visualize=False),
    'kernel breakdown': lambda t: t.get_gpu_kernel_breakdown(visualize=False),
    'overlap': lambda t: t.get_comm_comp_overlap(visualize=False),
    'queue length': lambda t: t.get_queue_length_summary(),
    'bandwidth': lambda t: t.get_memory_bw_summary(),
    'launches': lambda t: t.get_cuda_kernel_launch_stats(visualize=False),
}


def outcome(analysis, trace):
    try:
        analysis(trace)
    except Exception as e:  # whatever it raises is what is to be told
        return type(e).__name__
    return 'ok'


def main():
    logging.disable(logging.WARNING)
    warnings.simplefilter('ignore')
    trace = TraceAnalysis(trace_files={0: os.path.abspath(sys.argv[1])}, include_last_profiler_step=True)
    events, text = trace.t.get_trace(0), trace.t.symbol_table.sym_table
    slices, steps = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for category, name, step in zip(events['cat'], events['name'], events['iteration']):
        slices[text[category]][text[name]] += 1
        if step >= 0 and text[category] == 'cpu_op':
            steps[int(step)][text[name]] += 1
    json.dump({
        'slices': slices,
        'steps': steps,
        'profiler_steps': [int(step) for step in trace.get_profiler_steps()],
        'shapes': sum(isinstance(dims, list) for dims in events['input_dims']),
        'analyses': {name: outcome(analysis, trace) for name, analysis in ANALYSES.items()},
    }, sys.stdout)


main()
