"""``jitkernels bench patch``: functions of NumPy, SciPy and scikit-learn with and without `jitkernels.patch()`.

Each piece by its own calls with nothing else patched; then programs of scikit-learn with everything patched.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.errors import NotUsableError
from jitkernels.patching.piece import pieces
from jitkernels.patching.sample_arrays import blobs, normal
from jitkernels.patching.speed import ORIGINAL, PATCHED, measure_patched

PAIRWISE, KMEANS = "pairwise_distances", "KMeans.fit"
PROMISED_PATCH_SPEED = 1.5
"""Speed over scikit-learn on the geometric mean of the sizes of each program."""
PROGRAMS: dict[str, tuple[tuple[int, int], ...]] = {
    PAIRWISE: ((2000, 10), (2000, 100), (5000, 10), (5000, 100)),
    KMEANS: ((50_000, 8), (50_000, 16), (50_000, 64)),
}
"""Rows and columns, or samples and clusters."""


def verdict(lines: Sequence[Line]) -> Verdict:
    """Geometric means of the programs, and the slowest call of a piece."""
    words, holds = [], True
    for name in PROGRAMS:
        ratios = [ratio for line in lines if line.group == name and (ratio := line.speed_over(ORIGINAL)) is not None]
        if ratios:
            mean = geometric_mean(ratios)
            words.append(f"{name}: {mean:.2f} times scikit-learn (promised: {PROMISED_PATCH_SPEED:g})")
            holds = holds and mean >= PROMISED_PATCH_SPEED
    others = [line for line in lines if line.group not in PROGRAMS]
    if others:
        ratios = [line.speed_over(ORIGINAL) or 1.0 for line in others]
        slowest = min(others, key=lambda line: line.speed_over(ORIGINAL) or 1.0)
        words.append(
            f"pieces: {geometric_mean(ratios):.2f} times the originals, at least {min(ratios):.2f} "
            f"({slowest.group}, {slowest.case})"
        )
    return Verdict("; ".join(words), holds)


@benchmark("patch", verdict=verdict, against=ORIGINAL, parts=lambda: [*PROGRAMS, *(one.target for one in pieces())])
def patched_functions(settings: Settings) -> Iterator[Line]:
    """Functions of NumPy, SciPy and scikit-learn with and without their replacements."""
    if importlib.util.find_spec("sklearn") is None:
        raise NotUsableError("patch: expected scikit-learn to be installed: pip install scikit-learn")
    from threadpoolctl import threadpool_limits

    jk.set_num_threads(settings.threads)
    importlib.import_module("sklearn.cluster")  # its thread pools are limited if they are there
    wanted = settings.some_of([*PROGRAMS, *(one.target for one in pieces())])
    with threadpool_limits(settings.threads):
        for name in wanted:
            if name in PROGRAMS:
                yield from _programs(name, settings)
        for one in pieces():
            if one.target in wanted:
                for call in settings.limited(one.calls()):
                    times = measure_patched(call.bound(), (one.target,), seconds=settings.seconds)
                    yield Line(one.target, call.case, times, PATCHED)


def _programs(name: str, settings: Settings) -> Iterator[Line]:
    for dtype in settings.limited((np.float64, np.float32)):
        for rows, number in settings.limited(PROGRAMS[name]):
            call = _program(name, 100 if settings.is_tiny else rows, number, dtype)
            case = f"{np.dtype(dtype).name}, {rows} x {number if name == PAIRWISE else f'20, {number} clusters'}"
            times = measure_patched(call, seconds=20 * settings.seconds)
            yield Line(name, f"{case}, {settings.threads} threads", times, PATCHED)


def _program(name: str, rows: int, number: int, dtype: Any) -> Callable[[], Any]:
    if name == PAIRWISE:
        x = normal((rows, number), dtype)
        distances = importlib.import_module("sklearn.metrics").pairwise_distances
        return lambda: distances(x)
    samples = blobs(rows, 20, 32, dtype)
    model = importlib.import_module("sklearn.cluster").KMeans(number, n_init=1, random_state=0)
    return lambda: model.fit(samples)
