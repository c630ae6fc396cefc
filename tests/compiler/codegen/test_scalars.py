"""Every elementwise operation in every loop that NumPy has for it, and every cast, against NumPy."""

import functools
from typing import Any

import numpy as np
import pytest
from test_umath_validation import steps_between

import jitkernels as jk
from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.elementwise_ops import BETWEEN_PLANES, REALS, SCALARS, Scalar
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.lowering import lower_graph

Array = np.ndarray[Any, Any]
FLOATS = tuple(name for name in REALS if name.startswith("float"))
NEAR = {"fmod", "floor_divide", "remainder", "nextafter", "spacing", "ldexp", "libm_exp", "libm_log", "libm_log1p"}
"""Functions of `jitkernels.microkernels.maths` that are exact."""
UNITS = 4
CANCELLING = {"logaddexp", "logaddexp2", "lgamma", "digamma"}
"""Functions that are near in units of their operands, near their roots."""


OPERANDS = {"log_hypot": 2, "multiply_high": 2}
"""Of functions that NumPy lacks: how many they take, if more than one."""
OF_ONE_KIND = {
    "multiply_high": ("uint8", "uint16", "uint32", "uint64"),
    **dict.fromkeys(("libm_exp", "libm_log", "libm_log1p"), ("float64",)),
}
"""Of functions that NumPy lacks: the dtypes, if these are not all floats."""


def loops_of(scalar: Scalar) -> list[tuple[str, ...]]:
    """Dtypes of operands and result of NumPy's loops that are of ours."""
    if scalar.choice:
        return [("bool", name, name, name) for name in REALS]
    if scalar.name in OF_ONE_KIND:
        return [(name,) * (1 + OPERANDS.get(scalar.name, 1)) for name in OF_ONE_KIND[scalar.name]]
    if not isinstance(scalar.numpy, np.ufunc):
        return [(name,) * (1 + OPERANDS.get(scalar.name, 1)) for name in FLOATS]
    found = {
        tuple(np.dtype(code).name for code in text.replace("->", "")) for text in scalar.numpy.types if "O" not in text
    }
    return sorted(loop for loop in found if set(loop) <= {*REALS})


LOOPS = [
    (scalar.name, loop)
    for scalar in SCALARS.values()
    if scalar.code and scalar.name not in BETWEEN_PLANES
    for loop in loops_of(scalar)
]
BY_NUMPY = {("spacing", "float16"), ("nextafter", "float16")}
"""Left to NumPy, whose float16 has its own code for them."""


@functools.cache
def numbers(dtype: str, seed: int) -> Array:
    """Special values, and random ones of every size."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return np.array([False, True])
    special: list[Any]
    if dtype[0] != "f":
        info = np.iinfo(dtype)
        special = [0, 1, 2, 3, 5, 7, 8, 31, 63, 64, info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1]
        special += [-1, -2, -3, -8] if info.min else []
        return np.concatenate([np.array(special, dtype), random.integers(info.min, info.max, 12, dtype, endpoint=True)])
    limits = np.finfo(dtype)
    special = [
        0,
        1,
        2,
        0.5,
        1.5,
        2.5,
        3,
        7,
        0.1,
        np.inf,
        np.nan,
        limits.max,
        limits.max / 2,
        limits.max / 2 * (1 + limits.eps),
        limits.max / 3,
        limits.max / 4 * 3,
        limits.tiny,
        limits.smallest_subnormal,
    ]
    special += [limits.tiny * 3, 1 + limits.eps, 1e4, 300.7, 65519.0, 2.0**31]
    with np.errstate(all="ignore"):
        chosen = np.array([*special, *(-one for one in special)]).astype(dtype)
    bits = random.integers(0, 256, 12 * limits.dtype.itemsize, np.uint8).view(dtype)
    return np.concatenate([chosen, bits, random.normal(0, 5, 8).astype(dtype)])


def operands(loop: tuple[str, ...]) -> list[Array]:
    """Every number with every other."""
    given = np.meshgrid(*[numbers(name, seed) for seed, name in enumerate(loop)], indexing="ij")
    return [np.ascontiguousarray(one.ravel()) for one in given]


def computed(roots: Any, dtypes: tuple[str, ...], arrays: list[Array]) -> list[Array]:
    """What compiled code makes of arrays of one shape."""
    scope = Scope()
    shape = tuple(scope.symbol(f"n{i}", extent) for i, extent in enumerate(arrays[0].shape))
    inputs = tuple(Node("input", (), name, shape, {"index": i}) for i, name in enumerate(dtypes))
    graph = Graph(inputs, tuple(roots(inputs, shape)))
    values = {f"n{i}": extent for i, extent in enumerate(arrays[0].shape)}
    return lower_graph.compile_graph(graph, scope, JitConfig(opt_level=0)).run(arrays, values)


def agree(name: str, got: Array, expected: Array, units: int, arrays: list[Array]) -> None:
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if got.dtype.kind != "f":
        wrong = np.flatnonzero(got != expected)
    else:
        assert (np.isnan(got) == np.isnan(expected)).all(), f"{name}: NaN"
        far = steps_between(got, expected) if units else (got != expected)
        # A zero has a sign of its own; that of NaN is not looked at.
        wrong = np.flatnonzero(((far > units) | (np.signbit(got) != np.signbit(expected))) & ~np.isnan(expected))
    if wrong.size:
        given, ours, theirs = ([one.ravel()[wrong[:4]] for one in some] for some in (arrays, [got], [expected]))
        raise AssertionError(f"{name} of {given}: {ours}, expected {theirs}")


@pytest.mark.parametrize(("name", "loop"), LOOPS, ids=[f"{name}-{'-'.join(loop[:-1])}" for name, loop in LOOPS])
def test_operation(name: str, loop: tuple[str, ...]) -> None:
    scalar, given = SCALARS[name], loop[:-1]
    if scalar.function(given) is None:
        assert (name, given[0]) in BY_NUMPY
        return
    arrays = operands(given)
    if name == "power" and given[0][0] == "i":
        arrays[1] = np.abs(arrays[1]) & 15  # NumPy refuses negative ones
    (got,) = computed(lambda inputs, shape: [Node(name, inputs, loop[-1], shape)], given, arrays)
    with np.errstate(all="ignore"):
        expected = scalar.numpy(*arrays)
    is_near = given[0][0] == "f" and isinstance(scalar.code.get("f"), str) and name not in NEAR
    if name in CANCELLING:
        with np.errstate(all="ignore"):
            size = np.maximum(abs(expected), np.max(np.abs(arrays), axis=0))
            is_close = abs(got - expected) <= UNITS * np.spacing(size)
        got = np.where(is_close, expected, got)
    agree(name, got, expected, UNITS if is_near else 0, arrays)


CASTS = [(one, other) for one in REALS for other in REALS if one != other]


@pytest.mark.parametrize(("given", "wanted"), CASTS, ids=["-".join(pair) for pair in CASTS])
def test_cast(given: str, wanted: str) -> None:
    array = np.concatenate([numbers(given, 0), numbers(given, 1), numbers(given, 2)])
    if (given, wanted) == ("float64", "float16"):  # between two of them, and next to the middle of these
        middle = np.arange(64, dtype=np.uint16).view(np.float16).astype(np.float64) + 2.0**-25
        array = np.concatenate([array, middle, np.nextafter(middle, 0), np.nextafter(middle, 1), 1 + middle])
    (got,) = computed(lambda inputs, shape: [Node("cast", inputs, wanted, shape)], (given,), [array])
    with np.errstate(all="ignore"):
        expected = array.astype(wanted)
    agree("cast", got, expected, 0, [array])


SHAPES = ((), (1,), (0,), (3, 0), (2, 3, 5))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", REALS)
def test_any_shape(dtype: str, shape: tuple[int, ...]) -> None:
    """0-d arrays and arrays without elements, of all cheap operations."""
    names = [
        scalar.name for scalar in SCALARS.values()
        if (dtype, dtype) in {loop[:-1] for loop in loops_of(scalar)} and scalar.cost < 5
    ]  # fmt: skip
    arrays = [np.resize(numbers(dtype, seed), shape).astype(dtype) for seed in (0, 1)]
    results = [next(loop[-1] for loop in loops_of(SCALARS[name]) if loop[:-1] == (dtype, dtype)) for name in names]

    def roots(inputs: Any, extents: Any) -> list[Node]:
        return [Node(name, inputs, kind, extents) for name, kind in zip(names, results, strict=True)]

    found = computed(roots, (dtype, dtype), arrays)
    for name, got in zip(names, found, strict=True):
        with np.errstate(all="ignore"):
            agree(name, got, SCALARS[name].numpy(*arrays), 0, arrays)


def elements_of(ufunc: np.ufunc) -> Any:
    def in_loop(a: Array, b: Array) -> Array:
        result = np.empty_like(a)
        for i in range(len(a)):
            result[i] = ufunc(a[i], b[i])
        return result

    return in_loop


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ufunc", [np.minimum, np.maximum])
def test_extremes_of_special_values(ufunc: np.ufunc, dtype: str) -> None:
    """NaN and its sign are those of NumPy's loops."""
    values = np.array([0.0, -0.0, 1.5, -1.5, np.nan, -np.nan, np.inf, -np.inf], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    expected = ufunc(a, b)
    for function in (lambda a, b: ufunc(a, b), elements_of(ufunc)):
        found = jk.jit(function, strict=True)(a, b)
        np.testing.assert_array_equal(found, expected)
        rest = expected != 0  # of zeros NumPy's depends on the processor
        np.testing.assert_array_equal(np.signbit(found)[rest], np.signbit(expected)[rest])


@pytest.mark.parametrize("ufunc", [np.minimum, np.maximum])
def test_extremes_take_no_branch(ufunc: np.ufunc, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM would join two selections of scalars, and branch on both conditions, which data mispredict."""
    texts: list[str] = []

    def recorded(name: str, text: str, *arguments: Any, **options: Any) -> Any:
        texts.append(text)
        return module_source(name, text, *arguments, **options)

    module_source = module_text.module_source
    monkeypatch.setattr(module_text, "module_source", recorded)
    jk.jit(elements_of(ufunc), strict=True)(np.ones(3), np.ones(3))
    assert any(f"call nsz double @llvm.{ufunc.__name__}.f64" in text for text in texts)
