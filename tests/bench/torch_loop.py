#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job for the bench, with the commands of job.py and one of these training loops.

  torch_loop.py torch-tiny TRACE  a net of eight tiny layers: 430 operators a step of less than a microsecond each
  torch_loop.py torch-cnn TRACE   the convolutional net of loop.py on batches of 64, with real work in its operators
  torch_loop.py torch-lstm TRACE  50 calls of LSTMCell
  torch_loop.py torch-layer TRACE one layer of a small transformer: about 800 events a step

TRACE: the path of torch.profiler's file. Its kinds are "cpu", the first example of its documentation, and "full", with shapes,
memory and stacks. Its results are a table and a trace.
"""
import os
import sys
import time

os.environ.setdefault('OMP_NUM_THREADS', '1')

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

import job  # noqa: E402


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(8)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return functional.log_softmax(x, dim=1)


def conv_net():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 4), nn.LogSoftmax(1))


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(32, 32), nn.Linear(32, 4)

    def forward(self, x):
        state = None
        for _ in range(50):
            state = self.cell(x, state)
        return functional.log_softmax(self.out(state[0]), dim=1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.out = nn.Linear(128, 4)

    def forward(self, x):
        return functional.log_softmax(self.out(self.layer(x)).mean(1), dim=1)


LOOPS = {'torch-tiny': (Tiny, (8, 32)), 'torch-cnn': (conv_net, (64, 3, 28, 28)), 'torch-lstm': (Cells, (8, 32)), 'torch-layer': (Layer, (8, 64, 128))}


class Job(job.Loop):
    def __init__(self, kind):
        make_net, shape = LOOPS[kind]
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.net = make_net()
        self.data = torch.randn(shape)
        self.label = torch.arange(shape[0]) % 4
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)

    def step(self):
        self.optimizer.zero_grad()
        loss = functional.nll_loss(self.net(self.data), self.label)
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Builtin(job.Builtin):
    def __init__(self, trace):
        self.trace = trace

    def begin(self, kind):
        # 'cpu', or more of memory, shapes and stacks, each with those before it.
        level = ('cpu', 'memory', 'shapes', 'full').index(kind)
        self.profile = profile(activities=[ProfilerActivity.CPU], profile_memory=level >= 1, record_shapes=level >= 2,
                               with_stack=level >= 3)
        self.profile.start()

    def end(self):
        self.profile.stop()
        self.profile.key_averages().table()
        self.profile.export_chrome_trace(self.trace)
        return lambda: len(self.profile.events())

    def selves(self, loop, steps):
        """The operator that does nothing tells what torch.profiler adds to the inside of each call. What it adds to a step
        beyond that is around its calls, in the self times of those that contain them."""
        nothing = torch.ones(8)
        empty, _, _ = events_of(lambda: torch.resolve_conj(nothing), 30 * steps)
        inside = empty['aten::resolve_conj'][1] / empty['aten::resolve_conj'][0]
        bare = min(loop.run(steps)['wall_ns'] for _ in range(3))
        rows, wall, calls = min((events_of(loop.step, steps) for _ in range(3)), key=lambda found: found[1])
        around = max(0, (wall - bare) / calls - inside)
        return {name: [n, (self_ns - inside * n - around * children) / n] for name, (n, self_ns, children) in rows.items()}


def events_of(step, steps):
    """Returns {name: [calls, self ns, calls directly inside]}, the time of all the steps in ns, and the number of calls."""
    rows = {}
    with profile(activities=[ProfilerActivity.CPU]) as taken:
        began = time.monotonic_ns()
        for _ in range(steps):
            step()
        wall = time.monotonic_ns() - began
    for event in taken.events():
        row = rows.setdefault(event.name, [0, 0, 0])
        for i, n in enumerate((1, 1000 * event.self_cpu_time_total, len(event.cpu_children))):
            row[i] += n
    return rows, wall, sum(row[0] for row in rows.values())


if __name__ == '__main__':
    job.serve(Job(sys.argv[1]), Builtin(sys.argv[2]),
              os.path.join(os.path.dirname(torch.__file__), 'lib', 'libtorch_cpu.so'))
