# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own profiler around a section, with its complete results as JSON."""
import collections
import os
import tempfile

import kineto
import torch
from torch.profiler import ProfilerActivity, profile


def tensors_of(event):
    """Versions before 2.13 do not have the inputs of an event."""
    return kineto.tensors(getattr(event, 'input_dtypes', []), getattr(event, 'structured_input_shapes', []))


class Builtin:
    """`all_threads`: rows of every thread without memory; torch 2.13 has only one of the two."""

    def __init__(self, shapes=False, all_threads=False):
        config = None
        if all_threads:
            config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        self.profile = profile(activities=[ProfilerActivity.CPU], profile_memory=not all_threads, record_shapes=shapes,
                               experimental_config=config)
        self.start = self.profile.start
        self.stop = self.profile.stop

    def rows(self):
        """Returns key_averages(), torch's own counts: {name: [calls, bytes, own bytes]}"""
        rows = collections.defaultdict(lambda: [0, 0, 0])
        for row in self.profile.key_averages():
            # Allocations outside of operators are compared as memory.
            if row.key != '[memory]':
                values = row.count, row.cpu_memory_usage, row.self_cpu_memory_usage
                rows[row.key] = [a + b for a, b in zip(rows[row.key], values)]
        return dict(sorted(rows.items()))

    def by_shape(self):
        """Returns key_averages(group_by_input_shape=True): [[name, shapes, calls]]"""
        rows = self.profile.key_averages(group_by_input_shape=True)
        return sorted([row.key, str(row.input_shapes or []), row.count] for row in rows if row.key != '[memory]')

    def events(self):
        events = self.profile.events()
        index = {id(e): i for i, e in enumerate(events)}
        return [{
            'name': e.name,
            'annotation': e.is_user_annotation,
            'scope': e.scope,
            'thread': e.thread,
            'start_us': e.time_range.start,
            'dur_us': e.time_range.end - e.time_range.start,
            'parent': None if e.cpu_parent is None else index[id(e.cpu_parent)],
            'tensors': tensors_of(e),
            'sequence': e.sequence_nr,
            'forward_thread': e.fwd_thread,
            'self_bytes': e.self_cpu_memory_usage,
            'bytes': e.cpu_memory_usage,
        } for e in events]

    def slices(self):
        """Like kineto.slices(), without duplicates, which torch's trace still has."""
        count = collections.Counter()
        for e in self.profile.events():
            if e.name != '[memory]':
                count[e.name, tensors_of(e)] += 1
        return kineto.listed(count)

    def report(self, keep=None):
        """keep: the path for torch's own trace."""
        with tempfile.TemporaryDirectory() as directory:
            path = keep or os.path.join(directory, 'trace.json')
            self.profile.export_chrome_trace(path)
            trace = kineto.read(path)
        return {'rows': self.rows(), 'events': self.events(), 'memory': kineto.memory(trace),
                'links': kineto.links(trace), 'slices': self.slices(), 'arguments': kineto.arguments(trace),
                'by_shape': self.by_shape()}
