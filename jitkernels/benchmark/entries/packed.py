"""``jitkernels bench packed``: what a process pays that has nothing but a pack: no LLVM, no numba, an empty cache."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.attrs.binding import is_everyday
from jitkernels.benchmark.entries.startup import CHILD
from jitkernels.benchmark.processes import empty_cache, run, script
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.packing import Packing
from jitkernels.peers import ordinary_calls_of
from jitkernels.registry import row
from jitkernels.tuning.timer import Timing

PROCESSES = 5
ELEMENTS = 1000
LIMITS = {"total": 0.06, "further": 0.02, "memory": 15.0}
"""Seconds from NumPy to three kernels, seconds of a first call, MB beyond NumPy's own."""
WITHOUT = "import sys\nsys.modules['llvmlite'] = sys.modules['numba'] = None\n"
MEMORY = """
import json
print(json.dumps(next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024))
"""
CALLS = """
import json
import numpy as np
from time import perf_counter
import jitkernels as jk
calls = {}
with np.load(sys.argv[1]) as file:
    for key in file:
        calls.setdefault(key.rpartition(" ")[0], []).append(file[key])
found = []
for name in json.loads(sys.argv[2]):
    function = getattr(jk, name)
    started = perf_counter()
    function(*calls[name])
    found.append((name, perf_counter() - started))
print(json.dumps(found))
"""


def verdict(lines: Sequence[Line]) -> Verdict:
    (start,) = [line for line in lines if line.case == "three kernels"]
    further = [(line.timings["further"].seconds, line.case) for line in lines if "further" in line.timings]
    slowest, name = max(further, default=(0.0, "none"))
    total, memory = start.timings["total"].seconds, start.figures["megabytes"]
    text = (
        f"three kernels {total * 1e3:.0f} ms beyond numpy (promised: {LIMITS['total'] * 1e3:.0f}), first calls of "
        f"further functions at most {slowest * 1e3:.0f} ms ({name}; promised: {LIMITS['further'] * 1e3:.0f}), "
        f"{memory:.0f} MB beyond numpy's (promised: {LIMITS['memory']:.0f})"
    )
    holds = total <= LIMITS["total"] and slowest <= LIMITS["further"] and memory <= LIMITS["memory"]
    return Verdict(text, holds)


@benchmark("packed", verdict=verdict)
def packed(settings: Settings) -> Iterator[Line]:
    """A process without a compiler, with a pack: three kernels, the first call of each function, memory."""
    names = [found.kernel_type.name.lower() for found in settings.rows if is_everyday(found)]
    names = [name for name in names if ordinary_calls_of(row(name), ELEMENTS)]
    with empty_cache() as folder:
        pack, calls = folder / "some.pack", folder / "calls.npz"
        cache = folder / "cache"
        cache.mkdir(mode=0o700)
        run(__name__, "make", str(pack), str(calls), sorted({*names, "vmul", "softmax", "matmul"}), names)
        process = {
            "JITKERNELS_PACK": str(pack),
            "JITKERNELS_CACHE_DIR": str(cache),
            "PYTHONDONTWRITEBYTECODE": "",  # whoever installs a package compiles it
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        }
        script(f"{WITHOUT}{CHILD}", **process)
        runs = [script(f"{WITHOUT}{CHILD}", **process) for _ in range(PROCESSES)]
        alone = min(script(f"import numpy\n{MEMORY}", **process) for _ in range(2))
        most = min(script(f"{WITHOUT}{CHILD}{MEMORY}", **process) for _ in range(2))
        yield Line(
            "packed",
            "three kernels",
            {name: _quickest([one["times"][name] for one in runs]) for name in runs[0]["times"]},
            figures={"megabytes": most - alone, "pack": pack.stat().st_size / 1e6},
        )
        times: dict[str, list[float]] = {}
        for i in range(PROCESSES):
            for name, seconds in script(
                f"{WITHOUT}{CALLS}", str(calls), json.dumps(["vmul", *names]), **process
            ):
                times.setdefault(name, []).append(seconds)
            names = names[i + 1 :] + names[: i + 1]
        for name in names:
            first = [
                script(f"{WITHOUT}{CALLS}", str(calls), json.dumps([name]), **process)[0][1] for _ in range(2)
            ]
            timings = {"first": _quickest(first)}
            if name != "vmul":
                timings["further"] = _quickest(times[name])
            yield Line("packed", name, timings)


def _quickest(seconds: Sequence[float]) -> Timing:
    found = sorted(seconds)
    return Timing(found[0], found[len(found) // 2] - found[0])


def make(pack: str, calls: str, kernels: Sequence[str], names: Sequence[str]) -> int:
    """Write a pack of kernels, and the arguments of a call of each function that is called."""
    given: dict[str, Any] = {}
    for name in {*names, "vmul"}:
        for i, argument in enumerate(ordinary_calls_of(row(name), ELEMENTS)[0].arguments):
            given[f"{name} {i}"] = np.asarray(argument)
    np.savez(calls, **given)
    with Packing() as packing:
        packing.add_launcher()
        for name in kernels:
            packing.add_row(name)
    return packing.write(Path(pack))
