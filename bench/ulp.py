"""Measure the accuracy of elementwise functions in ULP: every float32 input, 28 million float64 inputs.

    python bench/ulp.py                          # implementation gen
    python bench/ulp.py gen mkl --write          # two implementations, their lines stored in docs/accuracy.md
    python bench/ulp.py --function vexp --dtype float32 --step 257     # a quick look

The error of a result is |got - true| / spacing(true rounded), where the spacing of subnormal numbers is that
of the smallest one. NaN for anything else, or infinity where the true value does not round to it (and the
reverse), is an infinite error. The true value comes from NumPy one precision up: float64 for float32, 80-bit
long double for float64; `--validate` compares the latter with mpmath, from which the error functions come. Of two
arguments the second is drawn at random. "tanh" is the candidate activation of LSTM_CTHT, the others being the identity.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CHUNK = 1 << 16
FLOAT64_CHUNKS = 168  # 11 million inputs
EDGES = (
    *(709.782712893384, 745.1332191019412, 708.3964185322641),  # exp: overflow, zero, subnormal
    *(36.7368005696771, 19.061547465398498),  # sigmoid and tanh round to one
    0.5493061443340549,  # tanh is one half
    261.66306061502326,  # exp: the largest error that longer searches have found
)
STEPS = range(-1076, 1026)
"""Every k that exp(x) = 2**k * exp(r) may have. Where x / ln 2 is k + 1/2, r is longest and errors are largest."""
BESIDE, FAR = 2000, 32
"""Inputs around such a point, at random distances of 1 to 2**FAR spacings, equally many for each scale."""
PAGE = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"

Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
Kernel = Callable[..., object]


def true_exp(x: Array) -> Array:
    """exp(x) in the precision of x."""
    result: Array = np.exp(x)
    return result


def true_sigmoid(x: Array) -> Array:
    """sigmoid(x) without overflow or cancellation."""
    e = np.exp(-np.abs(x))
    result: Array = np.where(x < 0, e, 1) / (1 + e)
    return result


def true_tanh(x: Array) -> Array:
    """tanh(x) in the precision of x."""
    return np.tanh(x)


def true_softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    result: Array = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    return result


def true_gelu_by_tanh(x: Array) -> Array:
    """x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x**3))."""
    number = x.dtype.type
    root = np.sqrt(number(2)) / np.sqrt(4 * np.arctan(number(1)))
    cubic = number(44715) / number(1000000)
    return x * true_sigmoid(2 * root * (x + cubic * x * x * x))


def elementwise(name: str, x: Array) -> Array:
    """A function of Python's library for float64, of mpmath for long double, where NumPy has none."""
    if x.dtype == np.float64:
        result: Array = np.frompyfunc(getattr(math, name), 1, 1)(x).astype(np.float64)
        return result
    from elementary_functions import by_mpmath

    return by_mpmath(name, x.astype(np.float64))


def true_gelu(x: Array) -> Array:
    """x * Phi(x)."""
    if x.dtype == np.float64:
        return x * elementwise("erfc", x * -math.sqrt(0.5)) / 2
    return x * elementwise("ncdf", x)


TRUTH: dict[str, Callable[..., Array]] = {
    "vexp": true_exp,
    "vsigmoid": true_sigmoid,
    "tanh": true_tanh,
    "vtanh": true_tanh,
    "vlog": np.log,
    "vsin": np.sin,
    "vcos": np.cos,
    "verf": lambda x: elementwise("erf", x),
    "vpow": np.power,
    "vsqrt": np.sqrt,
    "vrsqrt": lambda x: 1 / np.sqrt(x),
    "vgelu": true_gelu,
    "vgelu_tanh": true_gelu_by_tanh,
    "vsilu": lambda x: x * true_sigmoid(x),
    "vsoftplus": true_softplus,
    "swiglu": lambda x, b: x * true_sigmoid(x) * b,
}
SECOND: dict[str, tuple[float, float]] = {"vpow": (-5, 5), "swiglu": (-2, 2)}
"""The range of the second argument of binary functions."""
SLOW, SOME = ("verf", "vgelu"), 1024
"""Functions with slow true values for float64: only some inputs of each chunk are tested."""


@dataclass(frozen=True)
class Accuracy:
    """One line of the table."""

    function: str
    dtype: str
    implementation: str
    max_ulp: float
    worst: str
    inputs: int

    def line(self) -> str:
        """The line in Markdown."""
        cells = (self.function, self.dtype, self.implementation, f"{self.max_ulp:.3f}", self.worst, f"{self.inputs:,}")
        return "| " + " | ".join(cells) + " |"


HEADER = """\
| function | dtype | implementation | max ULP | worst input | inputs tested |
|---|---|---|---:|---|---:|"""


def float32_inputs(step: int) -> Iterator[Array]:
    """All 2**32 bit patterns in order, or every step-th of them."""
    offsets = np.arange(0, CHUNK * step, step, dtype=np.uint64)
    for start in range(0, 2**32 - CHUNK * step + 1, CHUNK * step):
        yield (offsets + np.uint64(start)).astype(np.uint32).view(np.float32)


def breakpoints() -> Array:
    """Where the range reductions of exp and, at half of that, of tanh go from one k to the next."""
    exact = (np.array(STEPS, np.longdouble) + np.longdouble(0.5)) * np.log(np.longdouble(2))
    random = np.random.default_rng(7)
    distances = np.exp2(random.uniform(0, FAR, (exact.size, BESIDE))) * random.choice([-1, 1], (exact.size, BESIDE))
    points = (exact.astype(np.float64).view(np.int64)[:, None] + distances.astype(np.int64)).view(np.float64).ravel()
    return np.concatenate([points, points / 2])


def float64_inputs(step: int) -> Iterator[Array]:
    """Special values, edges and breakpoints of each function first, then random inputs from ranges that matter."""
    random = np.random.default_rng(20)
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    near = (np.array(EDGES).view(np.int64)[:, None] + np.arange(-1500, 1501)).view(np.float64).ravel()
    special = np.concatenate([[0.0, np.inf, np.nan, np.finfo(float).max, 5e-324, 1e-310], powers, near])
    yield np.resize(np.concatenate([special, -special]), CHUNK)
    points = breakpoints()
    for start in range(0, points.size, CHUNK):
        chunk = np.resize(points[start : start + CHUNK], CHUNK)
        yield chunk
        yield -chunk
    ranges = [(-746, 710), (-40, 40), (-2, 2), (709, 710), (-746, -708), (-1, 1)]
    for index in range(0, FLOAT64_CHUNKS, step):
        kind = index // step % 8
        if kind < 6:
            yield random.uniform(*ranges[kind], CHUNK)
        elif kind == 6:
            yield np.ldexp(random.uniform(-1, 1, CHUNK), random.integers(-60, 11, CHUNK))
        else:
            yield random.integers(0, 2**64, CHUNK, dtype=np.uint64).view(np.float64)


def errors_in_ulp(got: Array, true: Array) -> Array:
    """The error of each result, as the module's docstring defines it."""
    info = np.finfo(got.dtype)
    rounded = true.astype(got.dtype)
    magnitude = np.clip(np.abs(rounded), info.tiny, info.max)
    if got.dtype == np.float32:  # by bits, four times faster than np.spacing
        exponent = (magnitude.view(np.int32) >> 23).astype(np.int64)
        unit = ((exponent + (1023 - 150)) << 52).view(np.float64)
    else:
        unit = np.spacing(magnitude).astype(true.dtype)
    error: Array = np.abs(got - true) / unit
    odd = ~np.isfinite(error)
    if odd.any():
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        error[odd] = np.where(same[odd], 0, np.inf)
    error[np.isinf(rounded) != np.isinf(got)] = np.inf
    return error


def measure(function: str, dtype: str, implementation: str, kernel: Kernel, step: int = 1) -> Accuracy:
    """Run a kernel over all inputs of its dtype, in chunks of CHUNK elements."""
    wide = np.float64 if dtype == "float32" else np.longdouble
    got, random = np.empty(CHUNK, dtype), np.random.default_rng(5)
    worst, worst_input, inputs = -1.0, "", 0
    every = CHUNK // SOME if function in SLOW and dtype == "float64" else 1
    started = shown = time.monotonic()
    for x in float32_inputs(step) if dtype == "float32" else float64_inputs(step):
        arguments = [x]
        if function in SECOND:
            arguments.append(random.uniform(*SECOND[function], CHUNK).astype(dtype))
        kernel(*arguments, got)
        looked_at = [argument[::every] for argument in arguments]
        with np.errstate(all="ignore"):
            error = errors_in_ulp(got[::every], TRUTH[function](*(argument.astype(wide) for argument in looked_at)))
        inputs += error.size
        index = int(np.argmax(error))
        if error[index] > worst:
            worst, worst_input = (float(error[index]), ", ".join(str(argument[index]) for argument in looked_at))
        if time.monotonic() - shown > 1:
            shown = time.monotonic()
            name = f"{function} {dtype} {implementation}"
            progress = f"{name}: {inputs:,} inputs, {shown - started:.0f} s, {worst:.3f} ULP"
            print(f"\r{progress}", end="", file=sys.stderr, flush=True)
    if shown != started:
        print(file=sys.stderr)
    return Accuracy(function, dtype, implementation, worst, f"`{worst_input}`", inputs)


def validate_oracle(samples: int = 400) -> None:
    """Compare the long double truth with mpmath; it must be right to 1/100 of a float64 ULP."""
    import mpmath  # type: ignore[import-untyped]  # it has no types

    mpmath.mp.prec = 200
    exact = {"vexp": mpmath.exp, "vsigmoid": lambda value: 1 / (1 + mpmath.exp(-value)), "tanh": mpmath.tanh}
    for function in exact:
        truth, worst = TRUTH[function], 0.0
        for x in float64_inputs(8):
            x = x[np.isfinite(x) & (np.abs(x) < 700)][:samples]
            for value, known in zip(x, truth(x.astype(np.longdouble)), strict=True):
                high = float(known)  # a long double is the sum of two doubles
                got = mpmath.mpf(high) + mpmath.mpf(float(known - np.longdouble(high)))
                unit = mpmath.mpf(float(np.spacing(max(abs(high), np.finfo(float).tiny))))
                worst = max(worst, float(abs(got - exact[function](mpmath.mpf(float(value)))) / unit))
        print(f"oracle of {function}: {worst:.5f} float64 ULP from mpmath")
        if worst > 0.01:
            raise SystemExit("the long double oracle is not accurate enough on this machine")


def attr_of(function: str, dtype: str) -> Any:
    """The attr of the kernel that computes a function."""
    import jitkernels as jk
    from jitkernels.attrs.schema.registry import op_schema

    if function != "tanh":
        name, _, form = function.partition("_")
        fields: dict[str, Any] = {"n": CHUNK, "dtype": dtype}
        return op_schema(name)(**fields, **({"form": form} if form else {}))
    return jk.LSTMCtHtAttr(d=CHUNK, act_gate="identity", act_cand=function, act_cell="identity", dtype=dtype)


def activation(lstm: Callable[..., object], dtype: str) -> Kernel:
    """The candidate activation of an LSTM_CTHT alone: input gate 1, forget gate and state before 0."""
    gates, before, hidden = np.zeros(4 * CHUNK, dtype), np.zeros(CHUNK, dtype), np.empty(CHUNK, dtype)
    gates[CHUNK : 2 * CHUNK] = 1

    def kernel(x: Array, y: Array) -> None:
        gates[:CHUNK] = x
        lstm(gates, before, y, hidden)

    return kernel


def kernels_of(function: str, dtype: str, implementations: list[str]) -> Iterator[tuple[str, Kernel]]:
    """The requested implementations that the registry has and can use here."""
    import jitkernels

    jitkernels.set_num_threads(1)
    candidates = jitkernels.get_all_candidates(attr_of(function, dtype))
    for implementation in implementations:
        if implementation in candidates:
            kernel = candidates[implementation]
            yield implementation, activation(kernel, dtype) if function == "tanh" else kernel
        else:
            print(f"{function} {dtype}: no implementation {implementation!r}, skipped", file=sys.stderr)


def write_page(rows: list[Accuracy]) -> None:
    """Store the table, with how to make it again; lines of what was not measured now stay."""
    text = (
        "# Accuracy\n\nGenerated by `python bench/ulp.py --write`; do not edit.\n\n"
        "Error in units of the spacing of the result's type at the true value. float32: all 2^32 inputs.\n"
        "float64: special values, the edges of each function, both sides of every step of the range\n"
        "reduction, random inputs from several ranges and random bits. Where the table has fewer inputs than\n"
        "that, others may have a little larger errors. Of two arguments the second is random. tanh: as an\n"
        "activation of LSTM_CTHT. What VGELU and VSILU round in the exponent, or lose where it underflows, grows\n"
        "with it for very negative inputs: results are near to zero.\n\n"
    )
    lines = PAGE.read_text().splitlines() if PAGE.is_file() else []
    table = {_key(line): line for line in lines if line.startswith(tuple(f"| {name} " for name in TRUTH))}
    table |= {_key(row.line()): row.line() for row in rows}
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text + "\n".join([HEADER, *sorted(table.values(), key=_order)]) + "\n")


def _key(line: str) -> tuple[str, ...]:
    """Function, dtype and implementation of a line."""
    return tuple(cell.strip() for cell in line.split("|")[1:4])


def _order(line: str) -> tuple[object, ...]:
    function, dtype, implementation = _key(line)
    return list(TRUTH).index(function), dtype, implementation == "refer", implementation


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("implementations", nargs="*", default=["gen"])
    parser.add_argument("--function", action="append", choices=list(TRUTH), help="default: all")
    parser.add_argument("--dtype", action="append", choices=["float32", "float64"], help="default: both")
    parser.add_argument("--step", type=int, default=1, help="test only every step-th input")
    parser.add_argument("--write", action="store_true", help=f"store the table in {PAGE.name}")
    parser.add_argument("--validate", action="store_true", help="first check the float64 oracle (needs mpmath)")
    options = parser.parse_args()
    if options.validate:
        validate_oracle()
    rows = [
        measure(function, dtype, implementation, kernel, options.step)
        for function in options.function or TRUTH
        for dtype in options.dtype or ("float32", "float64")
        for implementation, kernel in kernels_of(function, dtype, options.implementations)
    ]
    print("\n".join([HEADER, *(row.line() for row in rows)]))
    if options.write:
        write_page(rows)


if __name__ == "__main__":
    main()
