"""Full reductions in blocks shared by threads: NumPy's values, the same bits for any number of threads."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.core.module_text import SegmentParts
from jitkernels.compiler.codegen.nest.parallel_reduction import MAX_BLOCKS
from jitkernels.compiler.lowering.lower_graph import compile_graph
from jitkernels.compiler.schedule.nest.phase_rules import MIN_BLOCK_ELEMENTS
from jitkernels.core import cpu_target
from jitkernels.tools.testing.guard_pages import Guarded, Side

SIZES = (
    2 * MIN_BLOCK_ELEMENTS - 1,
    2 * MIN_BLOCK_ELEMENTS,
    2 * MIN_BLOCK_ELEMENTS + 1,
    3 * MIN_BLOCK_ELEMENTS + 77,
    5 * MIN_BLOCK_ELEMENTS + 1025,
    (MAX_BLOCKS + 3) * MIN_BLOCK_ELEMENTS + 3,
)
SIDES: tuple[Side, ...] = ("start", "end")
chosen = np.random.default_rng(12)


@pytest.fixture(autouse=True)
def _restored_threads() -> Iterator[None]:
    before = jk.get_num_threads()
    yield
    jk.set_num_threads(before)


def array(*shape: int, dtype: str = "float64") -> Any:
    if dtype[0] == "f":
        return chosen.standard_normal(shape).astype(dtype)
    return chosen.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "variance": lambda x: x.var(),
    "deviation": lambda x: (x - x.mean()).max() / x.std(),
    "largest": lambda x: x.max(),
    "smallest": lambda x: x.min(),
    "where largest": lambda x: x.argmax(),
    "where smallest": lambda x: x.argmin(),
    "log of sum": lambda x: np.log(np.exp(x - x.max()).sum()) + x.max(),
    "norm": lambda x: np.sqrt((x * x).sum()),
    "several": lambda x: x.sum() + x.max() * x.min(),
    "any": lambda x: (x > 3).any(),
    "all": lambda x: (x > -9).all(),
    "count": lambda x: np.count_nonzero(x > 0),
}


def close(found: Any, expected: Any) -> None:
    assert np.asarray(found).dtype == np.asarray(expected).dtype
    if np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol={2: 1e-2, 4: 2e-5, 8: 1e-12}[expected.dtype.itemsize])
    else:
        assert found == expected


@pytest.mark.parametrize("name", REDUCTIONS)
def test_values_and_bits_do_not_depend_on_threads(name: str) -> None:
    compile_graph = jk.jit(REDUCTIONS[name])
    for dtype in ("float64", "float32", "int32"):
        if name in ("deviation", "log of sum") and dtype == "int32":
            continue
        for size in SIZES:
            x = array(size, dtype=dtype)
            found = []
            for threads in (1, 2, 3):
                jk.set_num_threads(threads)
                found.append(compile_graph(x))
            wide = x.astype("float64") if dtype == "float32" and name not in ("any", "all", "count") else x
            expected = REDUCTIONS[name](wide)
            close(found[0], x.dtype.type(expected) if wide is not x and name[:5] != "where" else expected)
            assert len({np.asarray(one).tobytes() for one in found}) == 1


def test_reductions_are_one_kernel() -> None:
    x = array(3 * MIN_BLOCK_ELEMENTS)
    for name, function in REDUCTIONS.items():
        if name != "deviation":
            assert jk.jit(function).explain(x).kernels == 1, name


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "uint64", "bool"])
def test_other_dtypes(dtype: str) -> None:
    for name in ("largest", "where largest", "where smallest", "any", "all", "sum"):
        if name == "sum" and dtype == "float16":
            continue
        function = REDUCTIONS[name]
        if dtype == "bool" and name in ("any", "all"):
            function = {"any": lambda x: x.any(), "all": lambda x: x.all()}[name]
        x = array(4 * MIN_BLOCK_ELEMENTS + 5, dtype=dtype)
        close(jk.jit(function)(x), function(x))


@pytest.mark.parametrize("kind", ["argmax", "argmin", "max", "min"])
def test_equals_and_nan_in_any_block(kind: str) -> None:
    compile_graph = jk.jit(lambda x: getattr(x, kind)())
    size = 6 * MIN_BLOCK_ELEMENTS + 11
    for special in (5.0, -5.0, math.nan, math.inf, -math.inf):
        for first, second in (
            (0, size - 1),
            (MIN_BLOCK_ELEMENTS, 3 * MIN_BLOCK_ELEMENTS),
            (size - 2, size - 1),
            (2 * MIN_BLOCK_ELEMENTS - 1, 2 * MIN_BLOCK_ELEMENTS),
        ):
            x = np.zeros(size)
            x[first] = x[second] = special
            np.testing.assert_array_equal(compile_graph(x), getattr(x, kind)())
    for value in (-math.inf, math.inf, math.nan):
        x = np.full(size, value)
        np.testing.assert_array_equal(compile_graph(x), getattr(x, kind)())


def test_infinite_and_signed_sums() -> None:
    compile_graph = jk.jit(lambda x: x.sum())
    x = np.full(3 * MIN_BLOCK_ELEMENTS, -0.0)
    assert not np.signbit(compile_graph(x))
    x[5], x[2 * MIN_BLOCK_ELEMENTS + 5] = math.inf, 1.0
    assert compile_graph(x) == math.inf
    x[MIN_BLOCK_ELEMENTS] = -math.inf
    with np.errstate(invalid="ignore"):
        assert math.isnan(compile_graph(x))


def test_many_small_numbers_are_not_lost() -> None:
    x = np.full(70 * MIN_BLOCK_ELEMENTS + 3, 0.1, "float32")
    exact = math.fsum(x.astype("float64"))
    assert abs(float(jk.jit(lambda x: x.sum())(x)) - exact) <= 16 * np.spacing(np.float32(exact))


LAYOUTS: dict[str, Callable[[], Any]] = {
    "columns": lambda: array(300, 400)[:, ::2],
    "rows": lambda: array(900, 130)[::2],
    "transposed": lambda: array(300, 400).T[:, 1:],
    "few long rows": lambda: array(3, 50_000)[:, 1:],
    "many short rows": lambda: array(50_000, 5)[:, 1:],
    "three": lambda: array(40, 50, 60)[:, 1:, 2:],
    "backwards": lambda: array(5 * MIN_BLOCK_ELEMENTS)[::-1],
    "every third": lambda: array(9 * MIN_BLOCK_ELEMENTS)[::3],
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str) -> None:
    x = LAYOUTS[name]()
    functions: tuple[Callable[[Any], Any], ...] = (
        lambda x: x.sum(), lambda x: x.var(), lambda x: x.max(), lambda x: (x * 2 + 1).min()
    )  # fmt: skip
    for function in functions:
        compile_graph = jk.jit(function)
        found = []
        for threads in (1, 2, 3):
            jk.set_num_threads(threads)
            found.append(compile_graph(x))
        np.testing.assert_allclose(found[0], function(x), rtol=1e-11)
        assert len(set(found)) == 1


def test_products_of_vectors_and_rows() -> None:
    x, y = array(5 * MIN_BLOCK_ELEMENTS + 1), array(5 * MIN_BLOCK_ELEMENTS + 1)
    compile_graph = jk.jit(lambda x, y: x @ y)
    np.testing.assert_allclose(compile_graph(x, y), x @ y, rtol=1e-10)
    z = array(1, 5 * MIN_BLOCK_ELEMENTS)
    np.testing.assert_allclose(jk.jit(lambda z: z.sum(1))(z), z.sum(1), rtol=1e-10)


def test_no_reads_out_of_bounds() -> None:
    compile_graph = jk.jit(lambda x: x.sum() + x.max())
    for size in (
        2 * MIN_BLOCK_ELEMENTS,
        2 * MIN_BLOCK_ELEMENTS + 1,
        3 * MIN_BLOCK_ELEMENTS - 1,
        3 * MIN_BLOCK_ELEMENTS + 1023,
    ):
        for side in SIDES:
            x = Guarded(array(size, dtype="float32"), side)
            for threads in (1, 2):
                jk.set_num_threads(threads)
                close(compile_graph(x.array), np.float32(x.array.sum(dtype="float64") + x.array.max()))
            assert x.intact()


@pytest.mark.parametrize("shape", [(1200,), (30, 1200), (5, 6, 1200)])
def test_reductions_use_vectors(shape: tuple[int, ...]) -> None:
    """In any number of dimensions; these are collapsed to one loop where an array has no gaps."""
    function: Any = jk.jit(lambda x: x.max())
    found, _, _ = function.look_up((array(*shape, dtype="float32"),), {})
    units: list[SegmentParts] = []
    compile_graph(found.graph, found.scope, function.config, emitted=units)
    assert any("x float>" in text for unit in units for text in unit.texts)


@pytest.mark.parametrize("count", [2, 2.5])
def test_8_byte_scalars_do_not_narrow_vectors(count: Any) -> None:
    function: Any = jk.jit(lambda x, k: x * k + 1)
    found, _, _ = function.look_up((array(1200, dtype="float32"), count), {})
    units: list[SegmentParts] = []
    compile_graph(found.graph, found.scope, function.config, emitted=units)
    lanes = cpu_target.target().lanes("float32")
    widths = {int(width) for unit in units for text in unit.texts for width in re.findall(r"<(\d+) x float>", text)}
    assert 4 * lanes in widths, widths


def test_loops_with_many_loads_unroll_less() -> None:
    def variant(function: Callable[..., Any], *arguments: Any) -> str:
        return str(jk.jit(function).explain(*arguments))

    x = array(200, 200, dtype="float32")
    assert "; unroll 4," in variant(lambda x: x + 1, x)
    assert "; unroll 2," in variant(lambda x: x[:-2] + x[1:-1] + x[2:] + x[:-2, ::-1], x)
    assert "; unroll 1," in variant(lambda x: sum(x[i : i - 9] for i in range(9)), x)
    assert "; unroll 2," in variant(lambda x: x[..., 0] + 1, array(100, 100, 4, dtype="float32"))
