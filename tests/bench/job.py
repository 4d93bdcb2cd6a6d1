# SPDX-License-Identifier: Apache-2.0
"""Base of the measured jobs: a training loop that makes one step at a time and takes commands as lines on stdin. One line of JSON
answers each command:

  (start)       {"pid": N, "lib": PATH, "step_ns": N}  after the warm-up
  run N         N timed steps: {"cpu_ns": N, "wall_ns": N}; CPU time of all threads, user and kernel
  pace S        steps for S seconds: {"steps": [N in each tenth of a second], "longest_ns": N}
  spin          steps until the next line comes: {"steps": N}
  profile KIND  starts the runtime's own profiler: {"ns": N}
  unprofile     stops it and writes its results: {"ns": N, "cpu_ns": N, "events": N}, with the CPU time of its start
  selves N      PyTorch: torch.profiler's self times in N steps, without its own cost: {NAME: [calls, ns each]}

The end of stdin ends the job.
"""
import gc
import json
import os
import select
import sys
import time

WARM_SECONDS = 0.4
TENTH_NS = 10**8


class Loop:
    """Subclasses define step(), and settle() if steps leave work in progress."""

    def settle(self):
        pass

    def run(self, steps):
        """No work is in progress at both ends, so that every section has exactly its own."""
        gc.collect()
        self.settle()
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        for _ in range(steps):
            self.step()
        self.settle()
        return {'cpu_ns': time.process_time_ns() - cpu, 'wall_ns': time.monotonic_ns() - wall}

    def warm_up(self):
        end, steps = time.monotonic() + WARM_SECONDS, 0
        while steps < 20 or time.monotonic() < end:
            self.step()
            steps += 1
        return self.run(steps)['wall_ns'] // steps

    def pace(self, seconds):
        """A step counts when it ends."""
        steps, longest = [0] * round(seconds * 10), 0
        gc.collect()
        self.settle()
        begin = last = time.monotonic_ns()
        while True:
            self.step()
            now = time.monotonic_ns()
            longest, last = max(longest, now - last), now
            if now - begin >= len(steps) * TENTH_NS:
                return {'steps': steps, 'longest_ns': longest}
            steps[(now - begin) // TENTH_NS] += 1

    def spin(self):
        steps = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            self.step()
            steps += 1
        self.settle()
        return {'steps': steps}


class Builtin:
    """Subclasses define begin(kind) and end(), which returns the number of events."""

    def timed(self, call, *args):
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        result = call(*args)
        return {'ns': time.monotonic_ns() - wall, 'cpu_ns': time.process_time_ns() - cpu}, result

    def start(self, kind):
        self.started, _ = self.timed(self.begin, kind)
        return self.started

    def stop(self):
        answer, count = self.timed(self.end)
        answer['cpu_ns'] += self.started['cpu_ns']
        return dict(answer, events=count())


def serve(loop, builtin, lib):
    commands = {'run': lambda n: loop.run(int(n)), 'pace': lambda s: loop.pace(float(s)), 'spin': loop.spin, 'profile': builtin.start,
                'unprofile': builtin.stop, 'selves': lambda n: builtin.selves(loop, int(n))}
    answer = {'pid': os.getpid(), 'lib': lib, 'step_ns': loop.warm_up()}
    while True:
        print(json.dumps(answer), flush=True)
        # Unbuffered, because spin() would not see a line that was read ahead.
        words = sys.stdin.buffer.raw.readline().decode().split()
        if not words:
            return
        answer = commands[words[0]](*words[1:])
