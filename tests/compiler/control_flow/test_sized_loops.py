"""Loops bounded by int arguments: one compiled loop for all sizes, with NumPy's clamping.

Results, arguments and errors are those of plain NumPy where the numbers are the arrays' extents, smaller, and larger.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sized_windows  # noqa: F401  # adds programs
from jitted import notes
from random_bounds import RandomBounds
from sized_programs import SIZED, Sized

import jitkernels as jk
from jitkernels.compiler.ir import dim_bounds, symbolic_dims
from jitkernels.compiler.ir import dim_proofs as proofs
from jitkernels.compiler.ir.dim_proofs import from_end, larger, positive_part, smaller, substituted
from jitkernels.compiler.ir.graph import serial
from jitkernels.errors import TracingError

MAX_NODES = 1200
"""What a trace makes at most of a program here: some 50 ms. A loop that is unrolled makes more with each iteration."""
SIZES = ((36, 0), (20, 0), (20, -3), (20, 2), (9, 0), (12, -5), (11, 3), (9, -9), (10, -9), (8, -6), (5, 0), (6, -8))
"""Extents of the arrays, and by how much the numbers beside them differ; also none, one and fewer than none."""


def outcome(function: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """What a call gives or raises, and its arguments behind it."""
    try:
        with np.errstate(all="ignore"):
            found = function(*given)
    except Exception as error:  # whatever it is
        if isinstance(error, TracingError):
            raise
        found = type(error).__name__, str(error)
    return found, given


def assert_same(found: Any, expected: Any) -> None:
    """Equal numbers, where sums may be taken in another order; the same types, but for those of NumPy's floats."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif expected is None or isinstance(expected, str | int):
        assert found == expected
    else:
        assert np.shape(found) == np.shape(expected)
        assert np.asarray(found).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("program", SIZED, ids=lambda one: one.function.__name__)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_programs(program: Sized, backend: str) -> None:
    """Valid calls are compiled (`strict`), whether or not numbers fit the arrays.

    How sizes are handled is decided before a backend has its turn, so that few sizes do for the second one.
    """
    compiled = jk.jit(program.function, backend=backend)
    strict = jk.jit(program.function, backend=backend, strict=True)
    for number, (n, more) in enumerate(SIZES if backend == "native" else SIZES[3:9:2]):
        expected = outcome(program.function, program.make(n, more))
        assert_same(outcome(compiled, program.make(n, more)), expected)
        is_error = isinstance(expected[0], tuple) and isinstance(expected[0][0], str)
        if backend == "native" and number % 3 == 0 and not is_error:
            assert_same(outcome(strict, program.make(n, more)), expected)


@pytest.mark.parametrize("program", SIZED, ids=lambda one: one.function.__name__)
def test_no_loop_is_unrolled(program: Sized) -> None:
    found = []
    for n in (36, 72):
        compiled = jk.jit(program.function, strict=True)
        begun = serial()
        explanation = compiled.explain(*program.make(n, 0))
        assert not explanation.reason
        assert not notes(compiled)
        found.append((explanation.kernels, serial() - begun))
    (few, begun), (many, nodes) = found
    assert abs(many - few) <= 2  # as larger matrices are copied to whole cache lines, for one
    assert abs(nodes - begun) <= 20
    assert nodes < MAX_NODES


@pytest.mark.parametrize("program", SIZED, ids=lambda one: one.function.__name__)
def test_invalid_sizes_do_not_prevent_compilation(program: Sized) -> None:
    compiled = jk.jit(program.function)
    for more in (-3, 2, -3, 0):
        outcome(compiled, program.make(20, more))
    assert not compiled.explain(*program.make(20, 0)).reason
    made = [one for kept in compiled._specializations.values() for one in kept]
    assert any(one.graph is not None and one.calls for one in made)


@pytest.mark.parametrize("number", range(15))
def test_random_bounds(number: int) -> None:
    check_random(number)


@pytest.mark.full
@pytest.mark.parametrize("number", range(15, 2000))
def test_many_random_bounds(number: int) -> None:
    check_random(number)


def check_random(number: int) -> None:
    made = RandomBounds(number)
    function = made.function()
    compiled, chosen = jk.jit(function), np.random.default_rng(number)
    others = [[int(chosen.integers(*ends)) for ends in ((2, 16), (-3, 18), (0, 12))] for _ in range(4)]
    for n, size, m in ((12, 12, 3), (12, 9, 3), (12, 15, 4), *others):
        expected = outcome(function, made.arguments(n, size, m))
        found = outcome(compiled, made.arguments(n, size, m))
        is_error = [isinstance(one[0], tuple) for one in (found, expected)]
        assert is_error[0] == is_error[1], (made.text, n, size, m)
        if is_error[0]:
            assert found[0] == expected[0], (made.text, n, size, m)
        values = [one[1] if is_error[0] else (one[0], *one[1]) for one in (found, expected)]
        for one, other in zip(*values, strict=True):
            np.testing.assert_allclose(one, other, 1e-8, 1e-10, err_msg=f"{made.text}\n{n, size, m}")


def rows_of_csr(starts: Any, values: Any) -> Any:
    out = np.zeros(starts.shape[0] - 1)
    for i in range(starts.shape[0] - 1):
        out[i] = values[starts[i] : starts[i + 1] : 2].sum()
    return out


def bits(n: int, x: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += x[: i ^ 1][::2].sum() + x[3]
    return total


UNKNOWN: dict[Callable[..., Any], tuple[Any, ...]] = {
    rows_of_csr: (np.arange(0, 124, 3), np.random.default_rng(0).random(120)),
    bits: (60, np.random.default_rng(1).random(60)),
}


@pytest.mark.parametrize("function", UNKNOWN, ids=lambda one: one.__name__)
def test_unknown_bounds_are_not_unrolled(function: Callable[..., Any]) -> None:
    """They fall back, without a node for each iteration."""
    compiled, given = jk.jit(function), UNKNOWN[function]
    begun = serial()
    explanation = compiled.explain(*given)
    assert serial() - begun < 100
    assert explanation.kernels <= 3
    assert_same(compiled(*given), function(*given))


def test_sizes_in_bounds_have_a_specialization_without_checks() -> None:
    """Code that checks each index does not serve calls in which all are in bounds."""
    program = next(one for one in SIZED if one.function.__name__ == "rows_of_a_number")
    compiled = jk.jit(program.function)
    for more, count in ((2, 1), (0, 2), (2, 2), (0, 2)):
        outcome(compiled, program.make(20, more))
        assert sum(map(len, compiled._specializations.values())) == count


def test_a_relation_of_sizes_becomes_a_guard() -> None:
    """Clamped slices of arrays of k0 and n0 elements are equal where both are."""
    scope = symbolic_dims.Scope()
    one, other, i = scope.symbol("k0", 9), scope.symbol("n0", 9), scope.symbol("sc1", 3)
    scope.loop_variant["sc1"] = 0, one - 1
    apart = smaller(i + 4, one) - smaller(i + 4, other)
    assert dim_bounds.is_surely(apart, "==")
    for values, holds in (({"k0": 7, "n0": 7}, True), ({"k0": 7, "n0": 8}, False)):
        assert all(guard.holds(values) for guard in scope.guards.values() if guard.sign == "==") == holds
    assert [guard.sign for guard in scope.guards.values() if not guard.is_choice] == ["=="]


NEGATIVE: dict[str, Callable[[int, Any], Any]] = {
    "zeros": lambda n, x: np.zeros(n), "eye": lambda n, x: np.eye(n), "columns": lambda n, x: np.eye(3, n),
    "less": lambda n, x: np.eye(n - 4), "identity": lambda n, x: np.identity(n), "tri": lambda n, x: np.tri(n),
    "arange": lambda n, x: np.arange(n), "tile": lambda n, x: np.tile(x, n), "full": lambda n, x: np.full(n, 2.0),
    "repeat": lambda n, x: np.repeat(x, n), "indices": lambda n, x: np.indices((n, 2)),
    "reshape": lambda n, x: x.reshape(n, 4), "linspace": lambda n, x: np.linspace(0.0, 1.0, n),
    "broadcast": lambda n, x: np.broadcast_to(x, (n, 4)), "ones": lambda n, x: np.ones((2, n)),
    "empty": lambda n, x: np.empty((n, 2)).shape, "full_of_element": lambda n, x: np.full((3, n), x[0, 0]),
    "zeros_like": lambda n, x: np.zeros_like(x, shape=(n, 2)), "ones_like": lambda n, x: np.ones_like(x, shape=n),
    "full_like": lambda n, x: np.full_like(x, 3.0, shape=(2, n)),
    "empty_like": lambda n, x: np.empty_like(x, shape=(n,)).shape, "tri_columns": lambda n, x: np.tri(3, n),
    "logspace": lambda n, x: np.logspace(0.0, 1.0, n), "geomspace": lambda n, x: np.geomspace(1.0, 2.0, n),
    "fromfunction": lambda n, x: np.fromfunction(lambda i: i * 2, (n,)), "tile_rows": lambda n, x: np.tile(x, (n, 2)),
    "repeat_axis": lambda n, x: np.repeat(x, n, axis=1), "reshape_function": lambda n, x: np.reshape(x, (4, n)),
    "reshape_both": lambda n, x: x.reshape(n, n), "broadcast_new_axis": lambda n, x: np.broadcast_to(x, (n, 1, 4)),
    "broadcast_element": lambda n, x: np.broadcast_to(x[0, 0], n),
    "broadcast_last": lambda n, x: np.broadcast_to(x[:, :1], (1, n)),
    "broadcast_constant": lambda n, x: np.broadcast_to(2.0, (n, 3)),
    "broadcast_used": lambda n, x: np.broadcast_to(x, (n, 4)) * 2.0,
    "broadcast_less": lambda n, x: np.broadcast_to(x, (n - 4, 4)).sum(), "resize": lambda n, x: np.resize(x, (n, 2)),
    "vander": lambda n, x: np.vander(x[0], n), "pad": lambda n, x: np.pad(x, n), "hanning": lambda n, x: np.hanning(n),
    "bincount": lambda n, x: np.bincount(np.array([1, 2]), minlength=n), "diag": lambda n, x: np.diag(x[0], n),
    "array_split": lambda n, x: np.array_split(x[0], n)[0], "ndindex": lambda n, x: len(list(np.ndindex(n, 2))),
    "unravel_index": lambda n, x: np.unravel_index(0, (n, 4)), "roll": lambda n, x: np.roll(x, n),
    "sliding_window": lambda n, x: np.lib.stride_tricks.sliding_window_view(x[0], n),
}  # fmt: skip
"""NumPy functions that take a shape, an extent, or a number of elements."""


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_extents(name: str) -> None:
    """NumPy's error with NumPy's message, or its empty array, and its writes before; in later calls too."""

    def function(n: int, x: Any) -> Any:
        x /= 2.0
        return NEGATIVE[name](n, x)

    compiled = jk.jit(function)
    for n in (5, -2, 3, -5, -5, 5, 2):
        expected = outcome(function, (n, np.ones((1, 4))))
        assert_same(outcome(compiled, (n, np.ones((1, 4)))), expected)
    compiled = jk.jit(function)
    for n in (-3, -3, -4, -4, 5):  # where no call before had a shape
        expected = outcome(function, (n, np.ones((1, 4))))
        assert_same(outcome(compiled, (n, np.ones((1, 4)))), expected)


def loops(chosen: Any, scope: symbolic_dims.Scope) -> tuple[list[Any], Callable[[], Any]]:
    """Symbols of two sizes and of loops between bounds of these, and all values that they have together."""
    sizes = [scope.symbol(name, int(chosen.integers(2, 9))) for name in ("k0", "n0")]
    bounds = [0, 1, 2, sizes[0], sizes[1], sizes[0] - 1, sizes[1] - 1, sizes[0] // 2, 2 * sizes[1]]
    symbols: list[Any] = []
    for name in ("sc1", "sc2"):
        low, high = (bounds[int(chosen.integers(len(bounds)))] for _ in range(2))
        symbols.append(scope.symbol(name, 3))
        scope.loop_variant[name] = low, high
        bounds += [symbols[-1], symbols[-1] + 1]

    def every() -> Any:
        values = {name: scope.values[name] for name in ("k0", "n0")}
        for first in range(*_limits(scope.loop_variant["sc1"], values)):
            inner = values | {"sc1": first}
            for second in range(*_limits(scope.loop_variant["sc2"], inner)):
                yield inner | {"sc2": second}

    return [*sizes, *symbols], every


def _limits(bounds: Any, values: dict[str, int]) -> tuple[int, int]:
    low, high = (symbolic_dims.evaluated(one, values) for one in bounds)
    return low, high + 1


def expression(chosen: Any, symbols: list[Any], depth: int = 3) -> Any:
    """An extent made at random, as bounds of slices are."""
    if depth == 0 or chosen.random() < 0.2:
        return [*symbols, *symbols, 0, 1, -2, 5][int(chosen.integers(len(symbols) * 2 + 4))]
    one, other = (expression(chosen, symbols, depth - 1) for _ in range(2))
    match int(chosen.integers(8)):
        case 0 | 1:
            return one + other
        case 2 | 3:
            return one - other
        case 4:
            return smaller(one, other)
        case 5:
            return larger(one, other)
        case 6:
            return one // 2
    return one % 3


def check_bounds(number: int) -> None:
    """Bounds hold for all values of the symbols; needs are met only where the extent is at least zero."""
    chosen, scope = np.random.default_rng([number, 7]), symbolic_dims.Scope()
    symbols, every = loops(chosen, scope)
    found = expression(chosen, symbols)
    needs = proofs.needs(found)
    ends = [dim_bounds.limit(found, is_upper=one) for one in (False, True)]
    least = symbolic_dims.least_of(found)
    for values in every():
        now = symbolic_dims.evaluated(found, values)
        assert ends[0] is None or symbolic_dims.evaluated(ends[0], values) <= now
        assert ends[1] is None or symbolic_dims.evaluated(ends[1], values) >= now
        assert needs is None or now >= 0
        assert least is None or now >= least


@pytest.mark.parametrize("seed", range(10))
def test_bounds_of_random_extents(seed: int) -> None:
    for number in range(200):
        check_bounds(1000 * seed + number)


def test_normal_form() -> None:
    """Equal clamps have equal keys."""
    scope = symbolic_dims.Scope()
    i, n = scope.symbol("sc1", 3), scope.symbol("n0", 9)
    same = symbolic_dims.same
    assert same(smaller(i + 3, n), smaller(n, i + 3))
    assert same(larger(i, n) + smaller(i, n), i + n)
    assert same(positive_part(i - n) - positive_part(n - i), i - n)
    assert same(substituted(smaller(i + 3, n), "n0", i + 3), i + 3)
    for bound, extent in itertools.product(range(-6, 7), range(2, 5)):
        values = {"sc1": bound, "n0": extent}
        clamped = smaller(larger(from_end(i, n), 0), n)
        assert symbolic_dims.evaluated(clamped, values) == slice(bound, None).indices(extent)[0]
