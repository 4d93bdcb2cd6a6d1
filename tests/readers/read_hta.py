#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a trace into HolisticTraceAnalysis and prints its results as one JSON object.

  read_hta.py TRACE     or a directory of traces: the first rank's

`rank`: the rank. `slices`: calls by category and name, as it reads them (its analyses omit slices that begin after the last
iteration). `steps`: calls of the operators in each iteration. `analyses`: "ok" or the exception for each; those of GPUs raise
on any trace without one, torch's own included. `gpu`: the results of those analyses, each a list of rows, for those that are "ok".
"""
import collections
import json
import logging
import os
import sys
import warnings

from hta.common.trace import parse_trace_file
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


# The analyses above whose results are printed.
GPU = ('temporal breakdown', 'idle time', 'kernel breakdown', 'overlap', 'queue length', 'bandwidth', 'launches')


def tables(result):
    """The rows of all tables in a result, which is a table, or several in a tuple or a dictionary."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if result is None:  # the trace has no GPU
        return []
    if isinstance(result, tuple):
        return [rows for part in result for rows in tables(part)]
    return json.loads(result.reset_index().to_json(orient='records'))


def outcome(name, trace, results):
    try:
        result = ANALYSES[name](trace)
    except Exception as e:  # any exception is the result
        return type(e).__name__
    if name in GPU:
        results[name] = tables(result)
    return 'ok'


def main():
    logging.disable(logging.WARNING)
    warnings.simplefilter('ignore')
    path = os.path.abspath(sys.argv[1])
    what = {'trace_dir': path} if os.path.isdir(path) else {'trace_files': {0: path}}
    trace = TraceAnalysis(include_last_profiler_step=True, **what)
    rank = min(trace.t.get_ranks())
    _, events, symbols = parse_trace_file(trace.t.trace_files[rank])
    slices, steps = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for category, name in zip(events['cat'], events['name']):
        slices[symbols.sym_table[category]][symbols.sym_table[name]] += 1
    events, text = trace.t.get_trace(rank), trace.t.symbol_table.sym_table
    for category, name, step in zip(events['cat'], events['name'], events['iteration']):
        if step >= 0 and text[category] == 'cpu_op':
            steps[int(step)][text[name]] += 1
    results = {}
    analyses = {name: outcome(name, trace, results) for name in ANALYSES}
    json.dump({
        'rank': rank,
        'slices': slices,
        'steps': steps,
        'profiler_steps': [int(step) for step in trace.get_profiler_steps()],
        'shapes': sum(isinstance(dims, list) for dims in events['input_dims']),
        'analyses': analyses,
        'gpu': results,
    }, sys.stdout)


main()
