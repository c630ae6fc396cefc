"""``jitkernels bench new-sizes``: what a size that was never seen costs above one that was.

It runs in a process of its own, whose memory is watched. ``JITKERNELS_TUNE=replay`` keeps measurements out of it:
what they may cost is told by `tuning-time`.
"""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.processes import run
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

SIZES = {"ci": 2000, "full": 20000}
FIRST, CHUNK = 65, 500
LIMIT, BYTES = 1e-6, 2e6


def verdict(lines: Sequence[Line]) -> Verdict:
    above = {line.group: line.timings["above"].seconds for line in lines}
    grown = sum(line.figures["bytes"] for line in lines)
    worst = max(above, key=lambda name: above[name])
    return Verdict(
        f"a new size costs at most {above[worst] * 1e6:.2f} us above a warm call ({worst}; promised: "
        f"{LIMIT * 1e6:.0f} us), and {grown / 1e6:.1f} MB in all (promised: {BYTES / 1e6:.0f} MB)",
        above[worst] <= LIMIT and grown <= BYTES,
    )


@benchmark("new-sizes", verdict=verdict)
def new_sizes(settings: Settings) -> Iterator[Line]:
    """2,000 sizes (tag full: 20,000) never seen before through vmul, softmax and layer_norm."""
    for name, found in run(__name__, "child", SIZES[settings.tag], JITKERNELS_TUNE="replay").items():
        timings = {key: Timing(found[key], 0.0) for key in ("new", "warm", "above")}
        yield Line(name, f"{SIZES[settings.tag]} sizes", timings, figures={"bytes": found["bytes"]})


def _arguments(most: int) -> dict[str, Callable[[int], tuple[Any, ...]]]:
    x, scale, bias = (np.ones(4 * most, np.float32) for _ in range(3))
    y, out = np.ones_like(x), np.zeros_like(x)
    return {
        "vmul": lambda n: (x[:n], y[:n], out[:n]),
        "softmax": lambda n: (x[: 4 * n].reshape(4, n), -1, out[: 4 * n].reshape(4, n)),
        "layer_norm": lambda n: (
            x[: 4 * n].reshape(4, n), scale[:n], bias[:n], 1e-5, out[: 4 * n].reshape(4, n),
        ),
    }  # fmt: skip


def child(sizes: int) -> dict[str, dict[str, float]]:
    """Times per call of new sizes and of one size again and again, and the growth of the process."""
    found = {}
    last = FIRST + sizes
    for name, arguments in _arguments(last + 1).items():
        function = getattr(jk, name)
        seen = {FIRST - 1, last, *(1 << i for i in range(last.bit_length())), *range(FIRST, last, 97)}
        for n in sorted(size for size in seen if 0 < size <= last):
            function(*arguments(n))  # each class of sizes is built before
        new = [n for n in range(FIRST, last) if n not in seen]
        times = {"new": 0.0, "warm": 0.0}
        _pass(function, [arguments(64)] * CHUNK)
        gc.collect()
        before = _resident()
        for start in range(0, len(new), CHUNK):
            calls = [arguments(n) for n in new[start : start + CHUNK]]
            times["new"] += _pass(function, calls)
            same = [calls[len(calls) // 2]] * len(calls)
            times["warm"] += min(_pass(function, same) for _ in range(3))
        del calls, same
        gc.collect()
        grown = _resident() - before
        new_call, warm_call = times["new"] / len(new), times["warm"] / len(new)
        found[name] = {
            "new": new_call,
            "warm": warm_call,
            "above": max(new_call - warm_call, 0.0),
            "bytes": grown,
        }
    return found


def _pass(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> float:
    started = perf_counter()
    for arguments in calls:
        function(*arguments)
    return perf_counter() - started


def _resident() -> float:
    """Bytes of memory that this process has; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return float(int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")) if status.exists() else 0.0
