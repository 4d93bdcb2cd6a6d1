#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job for tests/gpu/run.py. It does what each line of its standard input says, and answers with a line of JSON.

On a GPU it trains with tensors of CUDA, and torch.profiler tells what there is to see. With --double DIR the tensors are on
the CPU, the operators run kernels on the mock of a GPU (tests/gpu/double), and the job's own account tells it.
"""
import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Work:
    """What both kinds of jobs can do. A method without a leading underscore is a command; its arguments are integers."""

    def __init__(self):
        self.done, self.spinning, self.spun = 0, None, 0

    def _sync(self):
        raise NotImplementedError

    def steps(self, count):
        """Training steps. The answer has the time of CLOCK_MONOTONIC before and after them."""
        self._sync()
        begin = now()
        for _ in range(count):
            self._step()
        self._sync()
        self.done += count
        return {"pid": os.getpid(), "begin": begin, "end": now(), "done": self.done}

    def time(self, count, large):
        """The median time of a step that waits for the launches (large 0) or for the GPU (large 1), in ns."""
        took = []
        for _ in range(count):
            self._sync()
            begin = time.perf_counter_ns()
            for _ in range(1 if large else 200):
                self._one(large)
            if large:
                self._sync()
            took.append(time.perf_counter_ns() - begin)
        self._sync()
        return {"ns": statistics.median(took)}

    def warm(self, seconds):
        """Keeps the GPU busy, so that its clock rises."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._warm()
            self._sync()
        return {}

    def leave(self, count, how):
        """Ends the process with kernels under way: 0 returns, 1 by os._exit(7), 2 by SIGTERM."""
        self._sync()
        for _ in range(count):
            self._one(0)
        if how == 1:
            os._exit(7)
        if how == 2:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(0)

    def queue(self, count):
        """Large kernels, which are still under way when the answer comes."""
        self._sync()
        for _ in range(count):
            self._one(1)
        return {"kernels": count}

    def spin(self, on):
        """Launches kernels in a thread of its own from now on, or no longer."""
        def run():
            while self.spinning:
                self._one(0)
                self.spun += 1
                if self.spun % 100 == 0:
                    self._sync()
        if on:
            self.spinning = threading.Thread(target=run)
            self.spinning.start()
        else:
            thread, self.spinning = self.spinning, None
            thread.join()
        return {"spun": self.spun}

    def burst(self, count):
        """Tiny kernels, as fast as they can be launched. The answer has the CPU time of the agent's thread in ns."""
        before = self._agent_ns()
        begin = now()
        for _ in range(count // 1000):
            self._tiny(1000)
            self._sync()
        end = now()
        time.sleep(1.5)  # the agent reads what CUPTI has every 0.1 s
        return {"begin": begin, "end": end, "agent_ns": self._agent_ns() - before, "count": count // 1000 * 1000}

    @staticmethod
    def _agent_ns():
        for task in os.listdir("/proc/self/task"):
            try:
                with open(f"/proc/self/task/{task}/comm") as comm, open(f"/proc/self/task/{task}/schedstat") as stat:
                    if comm.read().strip() == "mxbpf-gpu":
                        return int(stat.read().split()[0])
            except OSError:
                pass
        return 0

    def loader(self, workers):
        """Steps whose data comes from worker processes, which are forked."""
        import torch
        data = torch.utils.data.DataLoader(list(range(64)), batch_size=4, num_workers=workers, multiprocessing_context="fork")
        begin = now()
        for _ in data:
            self._step()
        self._sync()
        return {"begin": begin, "end": now(), "batches": len(data)}


class Cuda(Work):
    def __init__(self):
        import torch
        super().__init__()
        self.torch = torch
        torch.manual_seed(0)
        self.weight = torch.randn(512, 512, device="cuda", requires_grad=True)
        self.weight.grad = torch.zeros_like(self.weight)
        self.pinned = torch.ones(256, 512).pin_memory()
        self.pageable = torch.ones(256, 512)
        self.small = torch.ones(1, device="cuda")
        self.large = torch.randn(4096, 4096, device="cuda")
        self.graphs = {}

    def about(self):
        torch = self.torch
        return {"device": torch.cuda.get_device_name(0), "cuda": torch.version.cuda, "torch": torch.__version__,
                "devices": torch.cuda.device_count()}

    def _sync(self):
        self.torch.cuda.synchronize()

    def _step(self):
        torch = self.torch
        x = self.pinned.to("cuda", non_blocking=True) + self.pageable.to("cuda")
        torch.relu(x @ self.weight).sum().backward()
        with torch.no_grad():
            self.weight.sub_(1e-6 * self.weight.grad)
            self.weight.grad.zero_()
        self.weight[0, 0].item()

    def _warm(self):
        for _ in range(10):
            self.torch.bmm(self.large[None], self.large[None])  # another operator than those of a step

    def _one(self, large):
        if large:
            self.torch.mm(self.large, self.large)
        else:
            self.small.add_(1)

    def _tiny(self, count):
        for _ in range(count):
            self.small.add_(1)

    def profile(self, count):
        """Steps under torch.profiler. The answer has its kernels, copies and operators."""
        from torch.profiler import ProfilerActivity, profile
        self._sync()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            for _ in range(count):
                self._step()
            self._sync()
        self.done += count
        answer = {"kernels": 0, "kernel_ns": 0.0, "copies": 0, "bytes": 0, "operators": {}}
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            p.export_chrome_trace(f.name)
            events = json.load(open(f.name))["traceEvents"]
        for e in events:
            if e.get("cat") == "kernel":
                answer["kernels"] += 1
                answer["kernel_ns"] += e["dur"] * 1000
            elif e.get("cat") == "gpu_memcpy":
                answer["copies"] += 1
                answer["bytes"] += e["args"].get("bytes", 0)
        for row in p.key_averages():
            self_us = getattr(row, "self_device_time_total", 0)
            # Rows of the CPU also have CUPTI's own work ("Activity Buffer Request") and user annotations.
            if self_us and "CPU" in str(row.device_type) and "::" in row.key:
                answer["operators"][row.key] = self_us * 1000
        return answer

    own = profile

    def profile_time(self, count, large):
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
            return self.time(count, large)

    def streams(self, count):
        """Kernels on two streams at once."""
        torch = self.torch
        streams = [torch.cuda.Stream(), torch.cuda.Stream()]
        self._sync()
        begin = now()
        for stream in streams:
            with torch.cuda.stream(stream):
                for _ in range(count):
                    self.small.add_(1)  # one kernel; a product may have several
        self._sync()
        return {"begin": begin, "end": now(), "kernels": 2 * count}

    def capture(self, nodes):
        torch = self.torch
        graph, y = torch.cuda.CUDAGraph(), torch.ones(16, device="cuda")
        with torch.cuda.graph(graph):
            for _ in range(nodes):
                y.add_(1)
        self.graphs[nodes] = graph, y
        return {}

    def replay(self, nodes, count):
        self._sync()
        begin = now()
        for _ in range(count):
            self.graphs[nodes][0].replay()
        self._sync()
        return {"begin": begin, "end": now(), "kernels": nodes * count}

    def compiled(self, count):
        """A function of torch.compile, which launches kernels of Triton through the driver."""
        torch = self.torch
        function = torch.compile(lambda x: torch.relu(x * 2 + 1))
        x = torch.ones(4096, device="cuda")
        function(x)
        self._sync()
        begin = now()
        for _ in range(count):
            function(x)
        self._sync()
        return {"begin": begin, "end": now(), "kernels": count}

    def each_device(self, count):
        torch = self.torch
        tensors = [torch.ones(16, device=f"cuda:{i}") for i in range(torch.cuda.device_count())]
        for i in range(len(tensors)):
            torch.cuda.synchronize(i)
        begin = now()
        for x in tensors:
            for _ in range(count):
                x.add_(1)
        for i in range(len(tensors)):
            torch.cuda.synchronize(i)
        return {"begin": begin, "end": now(), "kernels": count * len(tensors), "devices": len(tensors)}


class Double(Work):
    def __init__(self, directory):
        import torch

        import gpuops
        import torch_job
        super().__init__()
        torch.set_num_threads(1)
        parser = argparse.ArgumentParser()
        gpuops.add_arguments(parser, "mapped", "gpu")
        # Kineto is a part of PyTorch, so it is there from the beginning.
        loop = gpuops.Loop(parser.parse_args(["--gpu", directory, "--kineto", "once"]))
        self.ops, self.lib, self.kineto = loop.ops, loop.ops.lib, loop.kineto
        self.torch, self.job = torch, torch_job
        torch_job.define(loop)
        self.ops.lib.gpuops_init()
        self.ops.capture("gpuops::replay", (("relu", 40), ("reduce", 60), ("relu", 40)))
        self.weight = torch.ones(32, 32, requires_grad=True)
        self.data = torch.ones(32, 32)

    def about(self):
        return {"device": "the mock of a GPU", "cuda": "none", "torch": self.torch.__version__, "devices": 1}

    def _sync(self):
        self.lib.gpuops_sync()

    def _step(self):
        torch, ops = self.torch, self.torch.ops.gpuops
        x = torch.mm(ops.load(self.data), self.weight)
        self.job.Relu.apply(self.job.Gemm.apply(x)).sum().backward()
        with torch.no_grad():
            self.weight.sub_(0.001 * self.weight.grad)
            self.weight.grad.zero_()
            ops.step(self.weight)
            ops.replay(self.weight)
            ops.item(self.weight)

    def warm(self, seconds):
        return {}

    def _one(self, large):
        self.lib.gpuops_launch(b"large" if large else b"small", 2000000 if large else 1000, 0)

    def _tiny(self, count):
        self.lib.gpu_burst(count)

    def _sums(self):
        account = json.loads(json.dumps(self.ops.account()))
        return account["total"], account["operators"]

    def profile(self, count):
        """Steps, and the account of them."""
        total, operators = self._sums()
        self.steps(count)
        total2, operators2 = self._sums()
        change = {key: total2.get(key, 0) - total.get(key, 0) for key in total2}
        return {"kernels": change.get("kernels", 0), "kernel_ns": change.get("ns", 0), "copies": change.get("copies", 0),
                "bytes": change.get("bytes", 0),
                "operators": {name: sums["ns"] - operators.get(name, {}).get("ns", 0) for name, sums in operators2.items()
                              if sums.get("ns") and not {"copies", "sets", "graphs"} & set(sums)}}

    def own(self, count):
        """Steps under the mock of Kineto, the job's own profiler."""
        self._sync()
        error = self.kineto.lib.kineto_start()
        self.steps(count)
        return {"kernels": self.kineto.lib.kineto_stop(), "error": error}

    def streams(self, count):
        begin = now()
        for stream in (0, 1):
            for _ in range(count):
                self.lib.gpuops_launch(b"large", 100000, stream)
        self._sync()
        return {"begin": begin, "end": now(), "kernels": 2 * count}

    def capture(self, nodes):
        self.ops.capture("test", [("relu", 10)] * nodes)
        return {}

    def replay(self, nodes, count):
        begin = now()
        for _ in range(count):
            self.ops.graph("test")
        self._sync()
        return {"begin": begin, "end": now(), "kernels": nodes * count}

    def compiled(self, count):
        begin = now()
        for _ in range(count):
            self.lib.gpuops_launch_driver(b"triton_poi_fused_0", 5000, 0)
        self._sync()
        return {"begin": begin, "end": now(), "kernels": count}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--double", metavar="DIR", help="use the mock of a GPU in this directory")
    args = parser.parse_args()
    try:
        work = Double(args.double) if args.double else Cuda()
    except Exception as e:  # pylint: disable=broad-except; the check has to know
        print(json.dumps({"failed": f"{type(e).__name__}: {e}"}), flush=True)
        return
    for line in sys.stdin:
        name, *numbers = line.split()
        try:
            answer = getattr(work, name)(*map(int, numbers))
        except Exception as e:  # pylint: disable=broad-except; the check has to know
            answer = {"failed": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
