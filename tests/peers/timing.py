"""Timing calls on one device: samples of at least 2 ms, graph replays of short kernels, rounds."""

import statistics
import subprocess
import time

import torch

SAMPLE_S = 2e-3
SHORT_S = 300e-6  # shorter calls are replayed from a graph: queueing them would be what is timed


class Cuda:
    """Each sample is `calls` calls cycling over the copies, between two events."""

    def __init__(self, functions, copies):
        self.copies = copies
        self.begin = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.sampler = {name: self._prepare(function) for name, function in functions.items()}

    def _eager(self, function, calls):
        def run():
            for i in range(calls):
                function(*self.copies[i % len(self.copies)])
        return run

    def _elapsed(self, run):
        self.begin.record()
        run()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) * 1e-3

    def _prepare(self, function):
        once = self._eager(function, len(self.copies))
        once()
        seconds = self._elapsed(once) / len(self.copies)
        calls = max(1, int(SAMPLE_S / max(seconds, 1e-6)) + 1)
        run = self._eager(function, calls)
        if seconds < SHORT_S:
            try:
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    function(*self.copies[0])
                side.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    run()
                return graph.replay, calls, function
            except RuntimeError:  # some libraries cannot be captured: they are timed as called
                torch.cuda.synchronize()
        return run, calls, function

    def sample(self, name):
        run, calls, function = self.sampler[name]
        function(*self.copies[0])  # after another library's turn
        return self._elapsed(run) / calls

    def clock(self):
        text = subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm,power.draw",
                               "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=False).stdout
        parts = text.splitlines()[0].split(",") if text.strip() else ["nan", "nan"]
        return float(parts[0]), float(parts[1])


class Cpu:
    def __init__(self, functions, copies):
        self.copies = copies
        self.functions = functions
        self.calls = {}
        for name, function in functions.items():
            start = time.perf_counter()
            function(*copies[0])
            seconds = time.perf_counter() - start
            self.calls[name] = max(1, int(5 * SAMPLE_S / max(seconds, 1e-6)))

    def sample(self, name):
        function, calls = self.functions[name], self.calls[name]
        function(*self.copies[0])
        start = time.perf_counter()
        for i in range(calls):
            function(*self.copies[i % len(self.copies)])
        return (time.perf_counter() - start) / calls

    def clock(self):
        return float("nan"), float("nan")


def interleaved(device, names, rounds):
    """{name: [seconds per round]} and the clocks seen; the order turns from round to round."""
    seconds = {name: [] for name in names}
    clocks = []
    for r in range(rounds):
        turn = r % len(names)
        for name in names[turn:] + names[:turn]:
            seconds[name].append(device.sample(name))
        if r % 7 == 0:
            clocks.append(device.clock())
    return seconds, clocks


def sustained(device, name, hold_s):
    """One contestant alone for hold_s, twice; the median of each second half, clock and power."""
    passes = []
    for _ in range(2):
        samples, clock, start = [], None, time.perf_counter()
        while time.perf_counter() - start < hold_s:
            at = time.perf_counter() - start
            run, calls, _ = device.sampler[name]
            samples.append((at, device._elapsed(run) / calls))
            if clock is None and at > 0.75 * hold_s:
                clock = device.clock()
        half = [s for at, s in samples if at > hold_s / 2] or [samples[-1][1]]
        passes.append((statistics.median(half), *(clock or device.clock())))
    return passes


def interval(values):
    """Median and an interval that holds it with about 95 % (ranks of the sorted values)."""
    ordered = sorted(values)
    n = len(ordered)
    spread = 0.98 * n ** 0.5
    low = ordered[max(0, int(n / 2 - spread))]
    high = ordered[min(n - 1, int(n / 2 + spread))]
    return statistics.median(ordered), low, high
