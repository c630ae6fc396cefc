"""Sums add at most 16 elements to an accumulator before they combine: every row that sums, and fused expressions.

The data is what a chain of additions gets most wrong: one large element, and small ones each of which rounds the same
way when it is added to that one. Each addition then loses up to half a unit in the last place.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cases
import numpy as np
import oracles
import pytest

import jitkernels as jk
from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.normalization import RmsNormAttr
from jitkernels.attrs.reduction import HLogSumExpAttr
from jitkernels.attrs.row_similarity import CosineAttr, DotAttr, SqEuclideanAttr
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, implementation, implementations
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.softmax import CrossEntropyAttr, LogSoftmaxAttr, SoftmaxAttr
from jitkernels.tools.testing import sizes
from jitkernels.tools.testing.expected import Truth

LENGTHS = (*range(1, 34), 100, 1000, 5_000, 100_000, 1_000_000)
FLAGGED = 1000
"""The length that every flag and choice of a row has sums of."""
OTHERS = 3
"""Extents that are not summed along."""
MOST_WORK = 2e6
FRACTIONS = (0.49, 0.74, 0.26, 0.465)
"""Small elements as fractions of the spacing at the large one: each rounds away by almost half a unit."""
OFFSET = 1000.0
EVERY_ROW: Sequence[Any] = all_schemas()
LIBRARIES = frozenset({"mkl", "onednn", "openblas"})
"""Implementations whose order of additions is not ours."""
EXPONENTIALS = (SoftmaxAttr, LogSoftmaxAttr, CrossEntropyAttr, HLogSumExpAttr)
"""Rows that sum exponentials of what they are given."""
QUADRATIC = (DotAttr, SqEuclideanAttr, CosineAttr, RmsNormAttr)
"""Rows that sum products of two."""
TRANSFORMS = (FftC2CAttr, FftR2CAttr, FftC2RAttr)
"""Rows that add as many numbers as a length has factors: bounds grow with its logarithm, but there are no chains."""
DTYPES = ("float32", "float64")


@functools.cache
def summed(row: Any) -> str:
    """The extent along which a row adds blocked sums: its error bound grows with the logarithm of that alone."""
    base = sizes.middles(row)[0]
    for name in sizes.integers(base) if row not in TRANSFORMS else ():
        short, long = (sizes.changed(base, {name: length}) for length in (8, 8 << 10))
        if short is None or long is None:
            continue
        growth = [getattr(long.tolerance(), one) - getattr(short.tolerance(), one) for one in ("ulp", "terms")]
        if 0 < max(growth) < 30:
            return name
    return ""


def rows_that_sum() -> Iterator[Any]:
    return (pytest.param(row, id=row.kernel_type.name.lower()) for row in EVERY_ROW if summed(row))


def attrs(row: Any) -> Iterator[tuple[KernelAttr, int]]:
    """The attrs of a row with sums of all lengths, every flag and choice with some."""
    for base in sizes.middles(row):
        if base.fields()["dtype"] not in DTYPES:
            continue
        small = {name: min(getattr(base, name), OTHERS) for name in sizes.integers(base)}
        single = dict.fromkeys(small, 1)
        for length in LENGTHS:
            shape = single if length > 100_000 else small
            attr = sizes.changed(base, {**shape, summed(row): length})
            attr = attr or sizes.changed(base, {**small, summed(row): length})
            if attr is None or attr.operations() > 40 * MOST_WORK:
                continue
            found = sizes.flags(attr, numbers=False) if length == FLAGGED else [attr]
            yield from ((one, length) for one in found)


def arrays_of(attr: KernelAttr, length: int, *, everything: bool = False) -> Iterator[tuple[str, list[AnyArray]]]:
    """Arguments by the name of what they show; every array with the summed extent has the same numbers along it.

    Without `everything`, long ones show less: their truth takes long.
    """
    random = np.random.default_rng(length)
    places = {0, length // 2, length - 1} if length == FLAGGED else {length // 3}
    kinds: dict[str, AnyArray] = {"of one sign": random.uniform(0.1, 1, length)}
    if length <= FLAGGED or everything:
        kinds["far from zero"] = OFFSET + random.standard_normal(length)
    for fraction in FRACTIONS if length < FLAGGED or everything else FRACTIONS[:1]:
        for place in places:
            row = np.full(length, fraction * np.finfo(attr.fields()["dtype"]).eps)
            row[place] = 1
            kinds[f"a peak at {place} over {fraction} of its spacing"] = row
    for name, numbers in kinds.items():
        values = np.log(numbers) if isinstance(attr, EXPONENTIALS) else numbers
        values = np.sqrt(numbers) if isinstance(attr, QUADRATIC) else values
        arrays = attr.signature().sample(length)
        for parameter, array in zip(attr.signature().arrays, arrays, strict=True):
            axes = [axis for axis, extent in enumerate(array.shape) if extent == length]
            if parameter.role != "out" and parameter.is_float and axes:
                is_origin = isinstance(attr, SqEuclideanAttr) and parameter.name == "y"
                np.moveaxis(array, axes[-1], -1)[...] = 0 if is_origin else values.astype(array.dtype)
        yield name, arrays


@pytest.mark.parametrize("row", list(rows_that_sum()))
def test_every_row_that_sums(row: Any) -> None:
    check_sums(row, everything=False)


@pytest.mark.full
@pytest.mark.parametrize("row", list(rows_that_sum()))
def test_every_row_that_sums_of_every_kind(row: Any) -> None:
    check_sums(row, everything=True)


def check_sums(row: Any, *, everything: bool) -> None:
    """All implementations together: the truth is the same for them, and takes longer than their calls."""
    names = [name for name in implementations(row) if name not in (*LIBRARIES, "refer")]
    tried = set()
    for attr, length in attrs(row):
        usable = [name for name in names if implementation(row, name).reason_against(attr) is None]
        tried |= {*usable}
        kernels = [kernel for name in usable for kernel in cases.kernels_of(attr, name)]
        if not kernels:
            continue
        for kind, arrays in arrays_of(attr, length, everything=everything):
            truth = Truth.by(oracles.expected, attr, arrays)
            for kernel in kernels:
                used = [array.copy() for array in arrays]
                with np.errstate(all="ignore"):
                    kernel.callable(*used)
                truth.assert_right(used, f"{kernel!r} of {kind}")
    assert tried


def test_detection_of_rows_that_sum() -> None:
    found = {row.__name__ for row in EVERY_ROW if summed(row)}
    assert found >= {"HSumAttr", "SoftmaxAttr", "LayerNormAttr", "SeqPoolAttr", "StrideASumAttr", "DotAttr"}


EXPRESSIONS: dict[str, tuple[Callable[[Any], Any], Callable[[int], Sequence[tuple[int, ...]]]]] = {
    "everything": (lambda x: x.sum(), lambda n: [(n,), (2, n), (n, 2), (n, 5)]),
    "rows": (lambda x: x.sum(axis=-1), lambda n: [(1, n), (3, n), (9, n)]),
    "columns": (lambda x: x.sum(axis=0), lambda n: [(n, 1), (n, 3), (n, 40)]),
    "means": (lambda x: x.mean(axis=-1), lambda n: [(1, n), (3, n)]),
    "products": (lambda x: (x * 1).sum(axis=-1), lambda n: [(4, n)]),
    "slices": (lambda x: x[:, 1:-1].sum(), lambda n: [(3, n + 2), (n, 3), (n, 40), (max(n // 40, 1), 42)]),
    "planes": (lambda x: x[:, 1:-1, 1:].sum(axis=(1, 2)), lambda n: [(2, 3, n + 1), (2, n + 2, 3), (2, n + 2, 40)]),
    "planes beside": (lambda x: x[:, 1:-1, 1:].sum(axis=(0, 1)), lambda n: [(n, 3, 4), (n, 5, 40), (3, n + 2, 3)]),
    "several": (lambda x: (x.sum(axis=1), x.max(axis=1))[0], lambda n: [(3, n), (n, 3)]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_fused_sum(name: str, dtype: str) -> None:
    """The oracle is exact: the small elements are equal, so their sum is a product."""
    program, shapes_of = EXPRESSIONS[name]
    compiled = jk.jit(program)
    eps = float(np.finfo(dtype).eps)
    for n in LENGTHS:
        for shape in shapes_of(n):
            if math.prod(shape) > MOST_WORK:
                continue
            for fraction in FRACTIONS:
                small = float(np.dtype(dtype).type(fraction * eps))
                peak = np.zeros(shape)
                peak[tuple(min(1, extent // 2) for extent in shape)] = 1  # within all slices above
                x = np.where(peak == 1, 1, small).astype(dtype)
                # All programs are linear, and sums of ones are exact.
                of_all, of_peak = (np.asarray(program(each)) for each in (np.ones(shape), peak))
                true = of_peak + (of_all - of_peak) * np.longdouble(small)
                error = np.abs(np.asarray(compiled(x)) - true) / np.abs(true) / (eps / 2)
                allowed = 16 + math.log2(math.prod(shape) / of_all.size) + 2
                assert (error <= allowed).all(), (shape, fraction, error.max(), allowed)
