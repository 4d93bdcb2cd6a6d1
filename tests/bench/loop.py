#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job to be measured: one of three training loops, one step at a time, told by lines on stdin what to do.

  loop.py tiny TRACE    an eager net so small that a step is nothing but calls and short operators
  loop.py static TRACE  a hybridized net with static_alloc and static_shape
  loop.py cnn TRACE     a convolutional net with real work in its operators

TRACE: where MXNet's own profiler puts its file. Each command is answered by one line of JSON:
  (start)       {"pid": N, "lib": PATH, "step_ns": N}  warmed up
  run N         N timed steps: {"cpu_ns": N, "wall_ns": N}, CPU of all threads, user and kernel
  spin          steps until the next line comes: {"steps": N}
  profile KIND  MXNet's own profiler on; "trace", "aggregate", or "late": a trace that is not written before its end:
                {"ns": N}
  unprofile     off, its results written: {"ns": N, "cpu_ns": N, "events": N}
The end of stdin ends the job.
"""
import gc
import json
import os
import select
import subprocess
import sys
import time

os.environ.setdefault('OMP_NUM_THREADS', '1')

import mxnet as mx  # noqa: E402
import mxnet.libinfo  # noqa: E402
from mxnet import autograd, gluon, nd, profiler  # noqa: E402

WARM_SECONDS = 0.4


def dense_net():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(16, activation='relu'), gluon.nn.Dense(16, activation='relu'), gluon.nn.Dense(4))
    return net


def conv_net():
    net = gluon.nn.HybridSequential()
    for channels in (16, 32):
        net.add(gluon.nn.Conv2D(channels, 3, padding=1), gluon.nn.BatchNorm(), gluon.nn.Activation('relu'),
                gluon.nn.MaxPool2D())
    net.add(gluon.nn.Dense(64, activation='relu'), gluon.nn.Dense(4))
    return net


LOOPS = {
    'tiny': (dense_net, (8, 10), {}),
    'static': (dense_net, (8, 10), {'static_alloc': True, 'static_shape': True}),
    'cnn': (conv_net, (32, 3, 28, 28), {}),
}


class Job:
    def __init__(self, kind):
        make_net, shape, hybridize = LOOPS[kind]
        mx.random.seed(1)
        self.net = make_net()
        self.net.initialize()
        if hybridize:
            self.net.hybridize(**hybridize)
        self.data = nd.random.uniform(shape=shape)
        self.label = nd.arange(shape[0]) % 4
        self.loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        self.trainer = gluon.Trainer(self.net.collect_params(), 'sgd', {'learning_rate': 0.01})

    def step(self):
        with autograd.record():
            loss = self.loss_of(self.net(self.data), self.label)
        loss.backward()
        self.trainer.step(self.data.shape[0])
        loss.asnumpy()

    def run(self, steps):
        """The queue of the engine is empty at both ends, so that every section has its own work and no other."""
        gc.collect()
        nd.waitall()
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        for _ in range(steps):
            self.step()
        nd.waitall()
        return {'cpu_ns': time.process_time_ns() - cpu, 'wall_ns': time.monotonic_ns() - wall}

    def warm_up(self):
        end, steps = time.monotonic() + WARM_SECONDS, 0
        while steps < 20 or time.monotonic() < end:
            self.step()
            steps += 1
        return self.run(steps)['wall_ns'] // steps

    def spin(self):
        steps = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            self.step()
            steps += 1
        nd.waitall()
        return {'steps': steps}


class Builtin:
    """MXNet's own profiler, as its user would switch it on. It writes a trace once a second, wanted or not."""

    def __init__(self, trace):
        self.trace, self.kind = trace, None

    def start(self, kind):
        self.kind = kind
        begin = time.monotonic_ns()
        profiler.set_config(profile_all=True, aggregate_stats=kind == 'aggregate', continuous_dump=kind != 'late',
                            filename=self.trace)
        profiler.set_state('run')
        return {'ns': time.monotonic_ns() - begin}

    def stop(self):
        begin, cpu = time.monotonic_ns(), time.process_time_ns()
        profiler.set_state('stop')
        table = profiler.dumps(format='json') if self.kind == 'aggregate' else ''
        if not table:
            profiler.dump()
        answer = {'ns': time.monotonic_ns() - begin, 'cpu_ns': time.process_time_ns() - cpu}
        answer['events'] = self.count_table(json.loads(table)) if table else self.count_trace()
        return answer

    # What mxbpf counts as events: operators, calls, allocations and frees; not the two counters that go with the calls.
    @staticmethod
    def count_table(table):
        rows = {**table['Time'], **table['Memory']}
        return sum(row['Count'] for category in rows.values() for name, row in category.items()
                   if not name.startswith('MXNet C API'))

    def count_trace(self):
        count = subprocess.run(['grep', '-c', '-e', '"ph": "b"', '-e', '"cat": "Device Storage"', self.trace],
                               stdout=subprocess.PIPE, check=True)
        return int(count.stdout)


def main():
    job, builtin = Job(sys.argv[1]), Builtin(sys.argv[2])
    commands = {
        'run': lambda n: job.run(int(n)),
        'spin': job.spin,
        'profile': builtin.start,
        'unprofile': builtin.stop,
    }
    answer = {'pid': os.getpid(), 'lib': mxnet.libinfo.find_lib_path()[0], 'step_ns': job.warm_up()}
    while True:
        print(json.dumps(answer), flush=True)
        # Unbuffered, or spin() would not see a line that was read ahead.
        words = sys.stdin.buffer.raw.readline().decode().split()
        if not words:
            return
        answer = commands[words[0]](*words[1:])


if __name__ == '__main__':
    main()
