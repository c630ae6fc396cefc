"""Measure the elementary functions in `microkernels.maths`: errors in ULP, speed beside NumPy's and MKL's.

    python bench/elementary_functions.py                            # every float32, some ten million float64: an hour
    python bench/elementary_functions.py --step 257 --function sin  # a quick look
    python bench/elementary_functions.py --write                    # the table, stored in docs/elementary_functions.md

Errors are those of `bench/ulp.py`. True values come from NumPy one precision up, float64 or 80-bit long double; NumPy
has no error functions, so there float32 is compared with our float64, and float64 with mpmath at fewer inputs. Of two
arguments, pairs are drawn at random. Times are of 4096 elements in the widest vectors, of which NumPy, MKL in its high
accuracy and ours take turns.
"""

import argparse
import ctypes
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from ulp import CHUNK, Array, errors_in_ulp, float32_inputs

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.codegen.python.outlined import externals
from jitkernels.codegen.python.simd_library import Library
from jitkernels.core import cpu_target
from jitkernels.microkernels.maths import function_table
from jitkernels.more.mkl.library import library
from jitkernels.runtime.loading import loader

DTYPES = ("float32", "float64")
NUMPY = {stem: name for name, (_, stem) in function_table.MODULES.items()}
"""NumPy's names by C's names."""
EXACT = frozenset({"floor_divide", "fmod", "ldexp", "nextafter", "remainder", "spacing"})
"""Functions without rounding, or with NumPy's rounding, which other tests check."""
RANGES = {
    **dict.fromkeys(("asin", "acos", "atanh"), (-1, 1)),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "pow"), (1e-3, 20)),
    "erf": (-4, 4), "erfc": (-5, 20), "acosh": (1, 20),
}  # fmt: skip
"""Ranges of timed arguments other than (-10, 10)."""
ANGLES = (0, 1000), (2e3, 9e3), (1e4, 1e5), (1e5, 1e6), (1e11, 1e12), (1e20, 1e30)
"""Further ranges for `CIRCULAR`: large angles take other paths of argument reduction."""
CIRCULAR = "sin", "cos", "tan"
CHUNKS, REPETITIONS, SPEED = 160, 300, 4096
BORDERS = (0.25, 0.5, 0.75, 1, np.pi / 4, np.pi / 2, np.pi, 3.95, 5.95, 10.1, 26.55, 27.3, 1607, 205782, 6585057)
PAGE = Path(__file__).resolve().parent.parent / "docs" / "elementary_functions.md"
HEADER = """\
| function | dtype | max ULP | worst input | inputs | ns | NumPy | MKL |
|---|---|---:|---|---:|---:|---:|---:|"""
HEADER_OF_ANGLES = """
Larger angles:

| function | dtype | angles | ns | NumPy | MKL |
|---|---|---|---:|---:|---:|"""


def functions() -> dict[tuple[str, str], Any]:
    """The functions of the table that NumPy or C has, by C's name and dtype; none whose errors are of its arguments."""
    known = {
        stem: name
        for name, (_, stem) in function_table.MODULES.items()
        if name not in EXACT
        if stem.startswith("erf") or (hasattr(np, name) and "add" not in name)
    }
    return {(stem, dtype): function_table.function(name, dtype) for stem, name in known.items() for dtype in DTYPES}


def compiled(name: str, dtype: str, function: Any) -> Callable[..., Any]:
    """A C function of pointers to arguments and results and of a count: a multiple of the lanes.

    Cold code is a function of its own, as where expressions are compiled.
    """
    lanes, kind = (
        cpu_target.target().vector_bytes // np.dtype(dtype).itemsize,
        {"float32": "float"}.get(dtype, "double"),
    )
    inputs, called = range(function.__code__.co_argcount), Library(alone={})
    symbol, _ = called.called(function, [dtype for _ in inputs], lanes)
    vector, align = f"<{lanes} x {kind}>", f"align {np.dtype(dtype).itemsize}"
    loads = [
        f"  %p{i} = getelementptr {kind}, ptr %x{i}, i64 %i\n  %v{i} = load {vector}, ptr %p{i}, {align}"
        for i in inputs
    ]
    body = "\n".join(loads)
    text = f"""{called.text}
define void @entry({"".join(f"ptr noalias %x{i}, " for i in inputs)}ptr noalias %y, i64 %n) {{
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %head ]
{body}
  %r = call {vector} {symbol}({", ".join(f"{vector} %v{i}" for i in inputs)})
  %q = getelementptr {kind}, ptr %y, i64 %i
  store {vector} %r, ptr %q, {align}
  %next = add nuw nsw i64 %i, {lanes}
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %end
end:
  ret void
}}
"""
    pointers = [ctypes.c_void_p] * (len(inputs) + 1)
    return ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64)(
        loader.address_of(IRSource(f"all_of_{name}_{dtype}", f"{LIGHT_PIPELINE}{text}", externals(called)))
    )


def float64_inputs(step: int) -> Iterator[Array]:
    """Every power of two and both sides of borders, multiples of pi/2, then random numbers of many ranges."""
    random = np.random.default_rng(21)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    near = (np.array(BORDERS).view(np.int64)[:, None] + np.arange(-2000, 2001)).view(np.float64).ravel()
    turns = (np.arange(1, CHUNK + 1) * np.longdouble(np.pi / 2)).astype(np.float64)
    for part in (np.concatenate([powers, near, [0, np.inf, np.nan]]), turns):
        yield np.resize(part, CHUNK)
        yield -np.resize(part, CHUNK)
    ranges = [(-1, 1), (-2, 2), (-10, 10), (-750, 750), (0, 28), (-6, 6), (-1e5, 1e5), (0.7, 1.4)]
    for index in range(0, CHUNKS, step):
        kind = index // step % 10
        if kind < 8:
            yield random.uniform(*ranges[kind], CHUNK)
        elif kind == 8:
            yield np.ldexp(random.uniform(-1, 1, CHUNK), random.integers(-60, 40, CHUNK))
        else:
            yield random.integers(0, 2**64, CHUNK, dtype=np.uint64).view(np.float64)


def by_mpmath(name: str, x: Array) -> Array:
    """In long double, element by element."""
    import mpmath  # type: ignore[import-untyped]  # it has no types

    function, result = getattr(mpmath, name), np.empty(x.size, np.longdouble)
    with mpmath.workprec(160):
        for i, value in enumerate(np.clip(x, -1000, 1000).tolist()):
            true = function(mpmath.mpf(value))
            high = float(true)
            result[i] = np.longdouble(high) + (np.longdouble(float(true - high)) if np.isfinite(high) else 0)
    return result


def truth(name: str, dtype: str) -> Callable[..., Array]:
    """The function one precision up, of arrays of the dtype."""
    wide: Any = np.float64 if dtype == "float32" else np.longdouble
    if not name.startswith("erf"):
        return lambda *x: getattr(np, NUMPY[name])(*(argument.astype(wide) for argument in x))
    if dtype == "float64":
        return lambda x: by_mpmath(name, x)
    ours = compiled(name, "float64", functions()[name, "float64"])

    def wider(x: Array) -> Array:
        wide, result = x.astype(np.float64), np.empty(x.size)
        ours(wide.ctypes.data, result.ctypes.data, x.size)
        return result

    return wider


def worst_of(name: str, dtype: str, kernel: Any, count: int, step: int) -> tuple[float, str, int]:
    """The largest error, where it is, and the number of inputs."""
    true, random = truth(name, dtype), np.random.default_rng(3)
    worst, position, inputs, got = -1.0, "", 0, np.empty(CHUNK, dtype)
    source = float32_inputs(step) if dtype == "float32" and count == 1 else float64_inputs(step)
    for chunk in source:
        with np.errstate(all="ignore"):
            x = [chunk.astype(dtype) for _ in range(count)]
            for i in range(1, count):  # of other sizes, of nearly the same, and of the same
                x[i] = (
                    random.permutation(chunk).astype(dtype)
                    if inputs // CHUNK % 2
                    else x[0] * random.choice([0.5, 0.99, 1, 1.7, -3, -40], CHUNK).astype(dtype)
                )
            if name.startswith("erf") and dtype == "float64":
                x = [np.resize(x[0][:: max(CHUNK // 2000, 1)], CHUNK)]
            used = 2048 if name.startswith("erf") and dtype == "float64" else CHUNK
            kernel(*(argument.ctypes.data for argument in x), got.ctypes.data, CHUNK)
            error = errors_in_ulp(got[:used], true(*(argument[:used] for argument in x)))
        inputs += used
        index = int(np.argmax(error))
        if error[index] > worst:
            worst, position = float(error[index]), ", ".join(str(argument[index]) for argument in x)
    return worst, position, inputs


def times_of(name: str, dtype: str, kernel: Any, count: int, limits: tuple[float, float]) -> str:
    """The least nanoseconds of an element, as cells: ours, NumPy's, MKL's; an empty one for what is not there."""
    random, result = np.random.default_rng(1), np.empty(SPEED, dtype)
    x = [random.uniform(*limits, SPEED).astype(dtype) for _ in range(count)]
    pointers = [ctypes.c_void_p(one.ctypes.data) for one in (*x, result)]
    size = ctypes.c_int64(SPEED)
    runs: list[Callable[[], Any] | None] = [lambda: kernel(*pointers, size), None, None]
    ufunc: Any = getattr(np, NUMPY[name], None)
    if ufunc is not None:
        runs[1] = lambda: ufunc(*x, out=result)
    mkl = library()[0]
    vml = f"vm{'s' if dtype == 'float32' else 'd'}{name.capitalize()}_64"
    if mkl and hasattr(mkl.functions, vml):
        mkl.functions.MKL_Set_Num_Threads_Local(1)
        function = getattr(mkl.functions, vml)
        functions = [
            mkl.ffi.from_buffer(f"{'float' if dtype == 'float32' else 'double'}[]", one) for one in (*x, result)
        ]
        runs[2] = lambda: function(SPEED, *functions, 0x2 | 0x140000 | 0x100)
    least = [np.nan] * 3
    for _ in range(REPETITIONS):
        for i, run in enumerate(runs):
            if run is not None:
                started = time.perf_counter_ns()
                run()
                least[i] = float(np.fmin(least[i], (time.perf_counter_ns() - started) / SPEED))
    return " | ".join("" if np.isnan(one) else f"{one:.2f}" for one in least)


def main() -> None:
    """Command line."""
    known = functions()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--function", action="append", choices=sorted({name for name, _ in known}))
    parser.add_argument("--step", type=int, default=1, help="test only every step-th input")
    parser.add_argument("--write", action="store_true", help=f"store the table in {PAGE.name}")
    options = parser.parse_args()
    lines, angles = [HEADER], [HEADER_OF_ANGLES]
    for (name, dtype), function in sorted(known.items()):
        if name in (options.function or [name]):
            kernel, count = compiled(name, dtype, function), function.__code__.co_argcount
            worst, position, inputs = worst_of(name, dtype, kernel, count, options.step)
            times = times_of(name, dtype, kernel, count, RANGES.get(name, (-10, 10)))
            lines.append(f"| {name} | {dtype} | {worst:.3f} | `{position}` | {inputs:,} | {times} |")
            print(lines[-1], flush=True)
            for limits in ANGLES if name in CIRCULAR else ():
                times = times_of(name, dtype, kernel, count, limits)
                angles.append(f"| {name} | {dtype} | {limits[0]:g} to {limits[1]:g} | {times} |")
                print(angles[-1], flush=True)
    if options.write:
        how = "Generated by `python bench/elementary_functions.py --write`; do not edit."
        title = f"# Elementary functions\n\n{how}\n\n"
        PAGE.write_text(title + "\n".join([*merge_rows(lines, 2), *merge_rows(angles, 3)]) + "\n")


def merge_rows(lines: list[str], keys: int) -> list[str]:
    """A table, its header first, with those lines of the page's that were not measured now: their keys come first."""

    def key(line: str) -> tuple[str, ...]:
        return tuple(cell.strip() for cell in line.split("|")[1 : 1 + keys])

    header, *measured = lines
    bars = header.splitlines()[-1].count("|")
    page = PAGE.read_text().splitlines() if PAGE.is_file() else []
    before = [line for line in page if line.count("|") == bars and " float" in line]
    table = {key(line): line for line in (*before, *measured)}
    return [header, *(table[name] for name in sorted(table, key=lambda row: row[:2]))]


if __name__ == "__main__":
    main()
