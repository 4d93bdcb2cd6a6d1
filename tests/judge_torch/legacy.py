# SPDX-License-Identifier: Apache-2.0
"""The profiler of a PyTorch built without Kineto, with the interface of builtin.py. Reads its records in their order, because
the tree that it builds itself uses whole microseconds and mistakes a short operator's child for a sibling."""
import collections

from torch.autograd import profiler_legacy


USER_SCOPE = 7


class Event:
    def __init__(self, record, parent):
        self.record, self.parent, self.children, self.own_bytes = record, parent, [], 0
        self.name = record and record.name()

    def tidied(self):
        """torch's rule: an only child with the same name is no event of its own."""
        while len(self.children) == 1 and self.children[0].name == self.name:
            self.own_bytes += self.children[0].own_bytes
            self.children = self.children[0].children
        for child in self.children:
            child.parent = self
            child.tidied()
        return self

    def bytes(self):
        return self.own_bytes + sum(child.bytes() for child in self.children)

    def all(self):
        yield self
        for child in self.children:
            yield from child.all()


def listed(events):
    """Lists events like builtin.py, but without bytes. The order of their starts on each thread replaces times."""
    index = {id(event): i for i, event in enumerate(events)}
    return [{
        'name': event.name,
        'annotation': event.record.scope() == USER_SCOPE,
        'scope': event.record.scope(),
        'thread': event.record.thread_id(),
        'start_us': i,
        'parent': index.get(id(event.parent)),
        'sequence': event.record.sequence_nr(),
        'forward_thread': event.record.fwd_thread_id(),
        'self_bytes': 0,
    } for i, event in enumerate(events)]


class Builtin:
    def __init__(self, shapes=False, *_):
        self.profile = profiler_legacy.profile(profile_memory=True, record_shapes=shapes)
        self.records = []

    def start(self):
        self.profile.__enter__()

    def stop(self):
        disable = profiler_legacy._disable_profiler_legacy

        def kept():
            self.records = disable()
            return self.records
        profiler_legacy._disable_profiler_legacy = kept
        self.profile.__exit__(None, None, None)

    def roots(self, memory):
        """Returns the root of the events of every thread; allocations go to `memory`."""
        for thread in self.records:
            root = at = Event(None, None)
            for record in thread:
                if record.kind() == 'push':
                    at.children.append(Event(record, at))
                    at = at.children[-1]
                elif record.kind() == 'pop':
                    at = at.parent
                elif record.kind() == 'memory_alloc' and record.cpu_memory_usage():
                    at.own_bytes += record.cpu_memory_usage()
                    memory.append(record.cpu_memory_usage())
            yield root

    def report(self, _=None):
        memory, rows, events, shapes = [], collections.defaultdict(lambda: [0, 0, 0]), [], collections.Counter()
        for root in self.roots(memory):
            for event in root.tidied().all():
                if event.parent:
                    rows[event.name] = [a + b for a, b in zip(rows[event.name], (1, event.bytes(), event.own_bytes))]
                    events.append(event)
                    shapes[event.name, str(event.record.shapes() or [])] += 1
        return {'rows': dict(sorted(rows.items())), 'events': listed(events), 'memory': {'cpu': memory},
                'by_shape': sorted([name, sizes, n] for (name, sizes), n in shapes.items())}
