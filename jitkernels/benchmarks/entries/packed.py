"""``jitkernels bench packed``: startup of a process with a kernel archive only: no LLVM, no numba, an empty cache."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.benchmarks.entries.startup import STARTUP_PROGRAM
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.benchmarks.processes import empty_cache, run, script
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.dispatch.operators import everyday
from jitkernels.tools.archive_builder import Packing
from jitkernels.tuning.timer import Timing

ARCHIVE_PROCESSES = 5
CALL_ELEMENTS = 1000
LIMITS = {"total": 0.06, "further": 0.02, "memory": 15.0}
"""Seconds from NumPy to three kernels, seconds of a first call, MB beyond NumPy's own."""
WITHOUT = "import sys\nsys.modules['llvmlite'] = sys.modules['numba'] = None\n"
MEMORY_PROGRAM = """
import json
print(json.dumps(next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024))
"""
CALLS_PROGRAM = """
import json
import numpy as np
from time import perf_counter, process_time
import jitkernels as jk
arrays = dict(np.load(sys.argv[1]))
found = []
for name, arguments, named in json.loads(sys.argv[2]):
    given = [arrays[value["array"]] if isinstance(value, dict) else value for value in arguments]
    started = perf_counter(), process_time()
    getattr(jk, name)(*given, **named)
    found.append((name, perf_counter() - started[0], process_time() - started[1]))
print(json.dumps(found))
"""
"""First calls in sequence, with everything that a function needs besides its code."""
FIRST_FUNCTION = "vmul"
"""The function called before all others, which bears the cost of a process's first call."""


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
    """A process without a compiler, with an archive: three kernels, the first call of each function, memory."""
    names = [schema.kernel_type.name.lower() for schema in settings.schemas if is_everyday(schema)]
    with empty_cache() as folder:
        pack, arrays, cache = folder / "some.pack", folder / "arrays.npz", folder / "cache"
        cache.mkdir(mode=0o700)
        first, *calls = run(__name__, "make", str(pack), str(arrays), [FIRST_FUNCTION, *names])
        process = {
            "JITKERNELS_PACK": str(pack),
            "JITKERNELS_CACHE_DIR": str(cache),
            "PYTHONDONTWRITEBYTECODE": "",  # an installed package has bytecode
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        }
        script(f"{WITHOUT}{STARTUP_PROGRAM}", **process)
        processes = settings.limited(range(ARCHIVE_PROCESSES))
        runs = [script(f"{WITHOUT}{STARTUP_PROGRAM}", **process) for _ in processes]
        alone = min(script(f"import numpy\n{MEMORY_PROGRAM}", **process) for _ in range(2))
        most = min(script(f"{WITHOUT}{STARTUP_PROGRAM}{MEMORY_PROGRAM}", **process) for _ in range(2))
        yield Line(
            "packed",
            "three kernels",
            {name: _quickest([measurement["times"][name] for measurement in runs]) for name in runs[0]["times"]},
            figures={"megabytes": most - alone, "pack": pack.stat().st_size / 1e6},
        )
        script(f"{WITHOUT}{CALLS_PROGRAM}", str(arrays), json.dumps([first, *calls]), **process)
        times: dict[str, list[list[float]]] = {}
        for number in processes:
            start = number * len(calls) // ARCHIVE_PROCESSES
            order = [first, *calls[start:], *calls[:start]]
            for name, *seconds in script(f"{WITHOUT}{CALLS_PROGRAM}", str(arrays), json.dumps(order), **process):
                times.setdefault(name, []).append(seconds)
        for name, pairs in times.items():
            wall, processor = map(_quickest, zip(*pairs, strict=True))
            yield Line("packed", name, {"first" if name == FIRST_FUNCTION else "further": wall, "processor": processor})


def _quickest(seconds: Sequence[float]) -> Timing:
    ordered = sorted(seconds)
    return Timing(ordered[0], ordered[len(ordered) // 2] - ordered[0])


def make(pack: str, arrays: str, names: Sequence[str]) -> list[Any]:
    """Write an archive of what the functions and the three kernels load; return the calls, and arrays with results."""
    stored: dict[str, Any] = {}
    calls: dict[str, Any] = {}
    with Packing() as packing:
        packing.add_launcher()
        for name in names:
            for call in ordinary_calls_of(op_schema(name), CALL_ELEMENTS)[:1]:
                result = everyday(name)(*call.arguments, **call.named)
                results = result if isinstance(result, tuple) else (result,)
                stored |= {f"{name} {i}": np.asarray(array) for i, array in enumerate(results)}
                calls[name] = name, [_stored(stored, value) for value in call.arguments], dict(call.named)
        for attr in (jk.VMulAttr(n=8), jk.SoftmaxAttr(rows=16, n=64), jk.MatMulAttr(m=64, n=64, k=64)):
            jk.KernelFuncs.cache().at(attr)
    np.savez(arrays, **stored)
    packing.write(Path(pack))
    return list(calls.values())


def _stored(stored: dict[str, Any], value: Any) -> Any:
    """Return a plain value, or the name under which an array is stored."""
    if value is None or isinstance(value, str | int | float):
        return value
    name = f"array {len(stored)}"
    stored[name] = np.asarray(value)
    return {"array": name}
