"""``jitkernels bench transforms``: Fourier transforms of smooth, prime and mixed lengths, against SciPy, NumPy and MKL.

Everyday functions are called as their users do: they allocate results. MKL's transforms are those of the kernel's
implementation, which writes to memory that is there; "kernel" is the one selected, called in the same way.
"""

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import find_implementation
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean, time_calls
from jitkernels.dispatch.kernel_cache import KernelFuncs

SMOOTH = (8, 12, 16, 32, 60, 64, 100, 128, 243, 256, 512, 625, 1000, 1024, 2048, 2187, 4096, 5040, 8192, 16_384, 44_100)
LONG = (65_536, 100_000, 131_072, 1 << 18, 1 << 20, 1 << 22)
PRIMES = (17, 31, 101, 127, 499, 1009, 4093, 10_007, 65_537, 1_000_003)
LENGTHS = {TINY_TAG: (8,), "ci": (8, 17, 64, 1000, 1009, 1024, 16_384), "full": (*SMOOTH, *LONG, *PRIMES)}
"""Lengths, by the tag of the run."""
SIDES = {TINY_TAG: (8,), "ci": (8, 64, 256), "full": (8, 17, 32, 64, 100, 128, 256, 512, 1000, 1024)}
"""Sides of matrices."""
FUNCTIONS = ("fft", "rfft", "irfft", "fft2")
LEAST_TRANSFORM_SPEED, MEAN_TRANSFORM_SPEED = 0.95, 1.5
OURS, KERNEL = "jitkernels", "kernel"


def verdict(lines: Sequence[Line]) -> Verdict:
    rival = "scipy" if any("scipy" in line.timings for line in lines) else "numpy"
    ratios = [(line.speed_over(rival) or 0.0, f"{line.group}, {line.case}") for line in lines]
    if not ratios:
        return Verdict("no transform was measured")
    mean, (least, worst) = geometric_mean([ratio for ratio, _ in ratios]), min(ratios)
    return Verdict(
        f"geometric mean {mean:.2f} times the speed of {rival} (promised: {MEAN_TRANSFORM_SPEED}), lowest "
        f"{least:.2f}: {worst} (promised: {LEAST_TRANSFORM_SPEED})",
        mean >= MEAN_TRANSFORM_SPEED and least >= LEAST_TRANSFORM_SPEED,
    )


@benchmark("transforms", verdict=verdict, against="scipy", parts=lambda: FUNCTIONS)
def transforms(settings: Settings) -> Iterator[Line]:
    """Everyday transforms of complex and real numbers against scipy.fft, numpy.fft and MKL."""
    for name in settings.some_of(FUNCTIONS):
        for dtype in settings.limited(("float32", "float64")):
            for n in (SIDES if name == "fft2" else LENGTHS)[settings.tag]:
                calls = _calls(name, dtype, n, peers=settings.peers)
                timings = time_calls(calls, seconds=settings.seconds, rounds=(3, 30))
                yield Line(f"{name} {dtype}", f"n = {n}", timings, OURS)


def _calls(name: str, dtype: str, n: int, *, peers: bool) -> Mapping[str, Bound]:
    """The calls of one transform, each with arrays of its own."""
    x, attr = _operand(name, dtype, n)
    length = {"n": n} if name == "irfft" and n % 2 else {}
    calls: dict[str, Bound] = {OURS: partial(getattr(jk, name), x, **length)}
    if attr is not None:
        calls[KERNEL] = _into_memory(KernelFuncs.cache().at(attr), attr)
    calls["numpy"] = partial(getattr(np.fft, name), x, **length)
    if peers and importlib.util.find_spec("scipy") is not None:
        import scipy.fft

        calls["scipy"] = partial(getattr(scipy.fft, name), x, **length)
    mkl = find_implementation(type(attr), "mkl") if peers and attr is not None else None
    if mkl is not None and attr is not None and mkl.reason_against(attr) is None:
        calls["mkl"] = _into_memory(KernelFuncs.cache().get(attr, mkl), attr)
    return calls


def _operand(name: str, dtype: str, n: int) -> tuple[Any, KernelAttr | None]:
    """What the function takes, and the attr of the kernel that it calls, where it is one."""
    generator, whole = np.random.default_rng(n), np.complex64 if dtype == "float32" else np.complex128
    if name == "rfft":
        return generator.standard_normal(n).astype(dtype), FftR2CAttr(rows=1, n=n, dtype=dtype)
    if name == "irfft":
        attr = FftC2RAttr(rows=1, bins=n // 2 + 1, odd=n % 2 == 1, dtype=dtype)
        return np.fft.rfft(generator.standard_normal(n)).astype(whole), attr
    shape = (n, n) if name == "fft2" else (n,)
    x = (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(whole)
    return x, None if name == "fft2" else FftC2CAttr(rows=1, n=n, columns=1, dtype=dtype)


def _into_memory(function: Callable[..., Any], attr: KernelAttr) -> Bound:
    return partial(function, *attr.signature().sample())
