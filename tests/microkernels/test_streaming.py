"""Streaming stores: the same bits for any alignment, in place or not, one result or several."""

import itertools
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel

N = 300_007
LINE = 16


def kernels(attr: Any) -> list[Kernel]:
    """All variants of the generated kernel; the first one stores into the caches."""
    found = implementation(type(attr), "gen")
    variants = found.variants(attr)
    assert {variant["stream"] for variant in variants} == {False, True}
    chosen = [v for v in variants if v["stream"] or v == variants[0]]
    return [Kernel(attr, found, variant) for variant in chosen]


def placed(array: AnyArray, elements: int) -> AnyArray:
    """A copy that begins so many elements behind a line of the caches."""
    room = np.zeros(array.size + 3 * LINE, array.dtype)
    first = (-room.ctypes.data // array.itemsize) % LINE + elements
    view = room[first : first + array.size].reshape(array.shape)
    view[...] = array
    return view


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("places", ["alike", "apart", "first apart"])
def test_several_results(amsgrad: bool, places: str) -> None:
    """As of ADAM: cache lines of all results are filled only where all are aligned alike."""
    attr = jk.AdamAttr(n=N, amsgrad=amsgrad)
    given = attr.signature().sample()
    inputs = len(attr.signature().inputs)
    at = {"alike": itertools.repeat(3), "apart": itertools.count(0), "first apart": iter([*[5] * 5, 2, *[1] * 9])}
    arrays = [placed(array, next(at[places])) for array in given]
    plain, *streamed = kernels(attr)
    plain.callable(*arrays)
    expected = [array.copy() for array in arrays[inputs:]]
    for kernel in streamed:
        for array in arrays[inputs:]:
            array[...] = np.nan
        kernel.callable(*arrays)
        for got, right in zip(arrays[inputs:], expected, strict=True):
            assert got.tobytes() == right.tobytes(), kernel


@pytest.mark.parametrize("which", [(0,), (2, 3), (1,), (0, 2, 3)])
def test_results_in_place(which: tuple[int, ...]) -> None:
    """Some results, or all, overwrite inputs: of ADAM its parts param, grad, mom1 and mom2."""
    attr = jk.AdamAttr(n=N)
    given = attr.signature().sample()
    expected = [array.copy() for array in given]
    plain, *streamed = kernels(attr)
    plain.callable(*expected)
    for kernel in streamed:
        arrays = [placed(array, 1) for array in given]
        for number, place in enumerate(which):
            arrays[4 + number] = arrays[place]
        kernel.callable(*arrays)
        for got, right in zip(arrays[4:], expected[4:], strict=True):
            assert got.tobytes() == right.tobytes(), kernel


def test_one_result_in_place() -> None:
    attr = jk.VMulAttr(n=N)
    x, y, z = attr.signature().sample()
    plain, *streamed = kernels(attr)
    plain.callable(x, y, z)
    for kernel in streamed:
        own = placed(x, 7)
        kernel.callable(own, y, own)
        assert own.tobytes() == z.tobytes(), kernel


SHAPES = [(300, 1003), (500, 1024), (2000, 150), (9, 65540)]
AFFINE = [{"affine": True}, {"affine": False}]
ROWS: list[tuple[Any, dict[str, Any]]] = [
    *((row, {"rows": m, "n": n}) for row in (jk.SoftmaxAttr, jk.LogSoftmaxAttr) for m, n in SHAPES),
    *(
        (row, {"rows": m, "n": n, **affine})
        for row in (jk.RmsNormAttr, jk.LayerNormAttr)
        for number, (m, n) in enumerate(SHAPES)
        for affine in AFFINE[number % 2 :][:1]
    ),
    *(
        (jk.BatchNormAttr, {"rows": m, "channels": n, "inner": inner, **affine})
        for m, n, inner in ((30, 12, 1003), (300, 1003, 1), (67, 4100, 1))
        for affine in AFFINE
    ),
    *(
        (jk.GroupNormAttr, {"rows": m, "channels": n, "inner": inner, "groups": 4, **affine})
        for m, n, inner in ((30, 12, 1003), (300, 1004, 1))
        for affine in AFFINE
    ),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("row", "fields"), ROWS, ids=[f"{row.kernel_type.name} {[*fields.values()]}" for row, fields in ROWS]
)
def test_rows(row: Any, fields: dict[str, Any], dtype: str) -> None:
    """The last row of a result serves as a buffer meanwhile; the bits equal those of other variants."""
    attr = row(**fields, dtype=dtype)
    gen, given = implementation(row, "gen"), attr.signature().sample()
    streamed = [variant for variant in gen.variants(attr) if variant.get("stream")]
    if row in (jk.LayerNormAttr, jk.GroupNormAttr, jk.BatchNormAttr) and not cpu_target.target().masked_lanes(
        dtype, 64
    ):
        assert not streamed
        return
    assert {variant["parallel"] for variant in streamed} == {False, True}
    for variant in streamed:
        expected = [array.copy() for array in given]
        Kernel(attr, gen, {**variant, "stream": False}).callable(*expected)
        kernel = Kernel(attr, gen, variant)
        for at in (0, 4, 13):
            arrays = [*given[:-1], placed(given[-1], at)]
            kernel.callable(*arrays)
            assert arrays[-1].tobytes() == expected[-1].tobytes(), (kernel, at)
            arrays = [placed(given[0], at), *given[1:-1]]
            kernel.callable(*arrays, arrays[0])
            assert arrays[0].tobytes() == expected[-1].tobytes(), (kernel, at)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", [jk.HSumAttr, jk.DotAttr, jk.HLogSumExpAttr], ids=lambda row: row.name)
def test_reductions_prefetch_their_input(row: Any, dtype: str) -> None:
    """Results have no more elements than rows; prefetching beyond an array's end is no access."""
    attr = row(rows=77, n=4099, dtype=dtype)
    gen, given = implementation(row, "gen"), attr.signature().sample()
    ahead = [variant for variant in gen.variants(attr) if variant["stream"]]
    assert ahead
    for variant in ahead:
        expected, arrays = ([array.copy() for array in given] for _ in range(2))
        Kernel(attr, gen, {**variant, "stream": False}).callable(*expected)
        Kernel(attr, gen, variant).callable(*arrays)
        assert arrays[-1].tobytes() == expected[-1].tobytes(), variant


def test_scalars_of_rows_do_not_narrow_vectors() -> None:
    """HVAR divides by float64 once per row: its vectors are of float32 all the same."""
    attr = jk.HVarAttr(rows=9, n=1000)
    made: Any = implementation(jk.HVarAttr, "gen").function(attr, vector_bytes=32)
    assert "fsub <8 x float>" in made.body.make(())


@pytest.mark.parametrize("n", [256, 1003])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gathered_rows(n: int, dtype: str) -> None:
    """Bits are copied, also those of NaN and zeros, at any alignment of rows."""
    attr = jk.GatherAttr(table_rows=50, n=n, count=1100, dtype=dtype)
    gen, (table, ids, y) = implementation(jk.GatherAttr, "gen"), attr.signature().sample()
    table.view("u1")[...] = np.random.default_rng(1).integers(0, 256, table.view("u1").shape)
    streamed = [variant for variant in gen.variants(attr) if variant.get("stream")]
    assert streamed or not cpu_target.target().masked_lanes(dtype, 64)
    for variant in streamed:
        for at in (0, 5):
            to = placed(np.zeros_like(y), at)
            Kernel(attr, gen, variant).callable(table, ids, to)
            assert to.tobytes() == table[ids].tobytes(), (variant, at)


@pytest.mark.parametrize("shape", [(1, 1024, 1040), (1, 1040, 1003), (1, 1003, 1040), (5, 528, 272)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_transposed_matrices(shape: tuple[int, int, int], dtype: str) -> None:
    """At any alignment; where rows of the result are no whole cache lines, nothing streams."""
    attr = jk.TransposeAttr(batch=shape[0], rows=shape[1], n=shape[2], dtype=dtype)
    gen, (x, y) = implementation(jk.TransposeAttr, "gen"), attr.signature().sample()
    streamed = [variant for variant in gen.variants(attr) if variant.get("stream")]
    assert streamed or not cpu_target.target().masked_lanes(dtype, 64)
    for variant in streamed:
        for at in (0, 4, 13):
            to = placed(np.zeros_like(y), at)
            Kernel(attr, gen, variant).callable(placed(x, at // 2), to)
            assert to.tobytes() == x.transpose(0, 2, 1).tobytes(), (variant, at)
