"""Everyday functions called from numba code: results, `out`, threads, errors, and calls through Python."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from processes import python
from test_cffi import everyday_call

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.attrs.windows import A_PAIR, BORDERS
from jitkernels.dispatch.numba_extension import call_site as sites

NATIVE_NEVER: dict[str, str] = {
    "fft_c2r": "an extent of the result is derived from others",
    "fft_r2c": "an extent of the result is derived from others",
}
"""Everyday functions of which every call goes through Python, with the reason."""


def njit(function: Callable[..., Any]) -> Callable[..., Any]:
    """``@numba.njit``, with types."""
    return numba.njit(function)  # type: ignore[no-any-return,unused-ignore]


def njit_parallel(function: Callable[..., Any]) -> Callable[..., Any]:
    """``@numba.njit(parallel=True)``, with types."""
    return numba.njit(parallel=True)(function)  # type: ignore[no-any-return,unused-ignore]


def caller(function: Any, parameters: list[str], call: str, **options: Any) -> Callable[..., Any]:
    """``@njit`` code that returns ``function(<call>)``, of some parameters."""
    scope = {"function": function, "np": np}
    exec(f"def called({', '.join(parameters)}):\n    return function({call})", scope)
    return numba.njit(**options)(scope["called"])  # type: ignore[no-any-return]


def compiled(row: Any, given: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """An everyday call, and one more with ``out``: arrays and floats are arguments, all else is written down."""
    names = [name for name, value in given.items() if isinstance(value, np.ndarray | float)]
    constants = {name: value for name, value in given.items() if name not in names and value is not None}
    call = ", ".join([f"{n}={n}" for n in names] + [f"{n}={v!r}" for n, v in constants.items()])
    function = getattr(jk, row.kernel_type.name.lower())
    made = caller(function, [*names, "out"], f"{call}), function({call}, out=out")
    return made, [given[name] for name in names]


@pytest.fixture
def through_python(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the calls that go through Python."""
    found: list[str] = []
    slow = sites.CallSite.slow

    def counted(self: sites.CallSite, *values: Any) -> Any:
        found.append(self.holder.name)
        return slow(self, *values)

    monkeypatch.setattr(sites.CallSite, "slow", counted)
    return found


def assert_same(found: Any, expected: Any) -> None:
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    several = expected if isinstance(expected, tuple) else (expected,)
    for one, other in zip(found if isinstance(found, tuple) else (found,), several, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype or not np.ndim(other)
        np.testing.assert_array_equal(one, other)


EVERYDAY = [
    row
    for row in registry.all_schemas()
    if is_everyday(row)
    and not any(field.meaning in (A_PAIR, BORDERS) for field in row.known_fields().values())
    and "panels" not in row.derived
]
"""Options that are pairs are no constants of numba, whose types do not tell how many panels packed weights have."""


@pytest.mark.parametrize("row", EVERYDAY, ids=lambda row: row.kernel_type.name.lower())
def test_every_everyday_function(row: Any, through_python: list[str]) -> None:
    """With new results and with `out`: the plain call's bits, without Python once a kernel is known."""
    given, expected = everyday_call(row)
    function, values = compiled(row, given)
    for is_first in (True, False):
        out = tuple(map(np.zeros_like, expected)) if isinstance(expected, tuple) else np.zeros_like(expected)
        result, same = function(*values, out)
        for found in (result, same, out):
            assert_same(found, expected)
        if is_first:
            del through_python[:]
    assert bool(through_python) == (row.kernel_type.name.lower() in NATIVE_NEVER)


def test_every_row_has_an_everyday_function() -> None:
    assert [row.__name__ for row in registry.all_schemas() if not is_everyday(row)] == []


def test_all_sizes_and_size_classes(through_python: list[str]) -> None:
    """Only the first call of each size class goes through Python."""

    @njit
    def call(x: Any) -> Any:
        return jk.softmax(x)

    jk.KernelFuncs.cache().clear()
    for n in (5, 6, 7, 8, 1, 9, 16, 100, 128, 5, 9):
        x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
        assert_same(call(x), jk.softmax(x))
    assert len(through_python) == 4


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("name", ["softmax", "hsum", "cumsum", "sort", "layer_norm", "rms_norm"])
def test_every_axis(name: str, axis: int) -> None:
    x = np.random.default_rng(0).standard_normal((4, 5, 6))
    function = getattr(jk, name)
    call = caller(function, ["x"], f"x, axis={axis}")
    for _ in range(2):
        assert_same(call(x), function(x, axis=axis))


MATRICES: dict[str, Callable[[Any], Any]] = {
    "C": lambda x: x,
    "Fortran": np.asfortranarray,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "gaps": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
}


LAYOUTS = [
    pytest.param(left, right, marks=[] if left == right or "C" in (left, right) else pytest.mark.full)
    for left in MATRICES
    for right in MATRICES
]


@pytest.mark.parametrize(("left", "right"), LAYOUTS)
def test_matrices_of_every_layout(left: str, right: str) -> None:
    @njit
    def call(a: Any, b: Any) -> Any:
        return jk.matmul(a, b)

    generator = np.random.default_rng(0)
    for m, n, k in ((3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (33, 17, 65)):
        a, b = (MATRICES[how](generator.standard_normal(s)) for how, s in ((left, (m, k)), (right, (k, n))))
        for _ in range(2):
            np.testing.assert_allclose(call(a, b), a @ b, rtol=1e-13, atol=1e-12)
    vector = generator.standard_normal(65)
    for _ in range(2):
        np.testing.assert_allclose(call(a, vector), a @ vector, rtol=1e-12, atol=1e-12)
        with pytest.raises(jk.ArgumentError, match="matmul: b: expected shape"):
            call(a, vector[1:])


def test_broadcast_and_converted_arguments_go_through_python(through_python: list[str]) -> None:
    @njit
    def call(x: Any, y: Any) -> Any:
        return jk.vadd(x, y)

    x = np.arange(12.0).reshape(3, 4)
    for y in (x[:1], x[0], x.astype(np.float32), x.astype(np.int64), x[::-1], x[:, :1]):
        for _ in range(2):
            assert_same(call(x, y), jk.vadd(x, y))
    assert len(through_python) >= 10
    assert_same(call(x, 2.5), jk.vadd(x, 2.5))


def test_python_scalars(through_python: list[str]) -> None:
    @njit
    def call(a: Any, x: Any) -> Any:
        return jk.vscal(a, x), jk.vscal(2, x)

    x = np.arange(5, dtype=np.float32)
    for a in (0.1, 3, np.float32(0.1)):
        for _ in range(3):
            first, second = call(a, x)
            assert_same(first, jk.vscal(float(a), x))
            assert_same(second, 2 * x)
    assert 0 < len(through_python) <= 6


def test_wrong_shapes_raise() -> None:
    @njit
    def call(x: Any, y: Any, out: Any) -> Any:
        return jk.vadd(x, y, out=out)

    x = np.ones((3, 4))
    for _ in range(2):
        call(x, x, np.empty_like(x))
    with pytest.raises(jk.ArgumentError, match="expected shapes that broadcast"):
        call(x, np.ones((3, 5)), np.empty_like(x))
    with pytest.raises(jk.ArgumentError, match=r"out: expected a writeable float64 array of shape \(3, 4\)"):
        call(x, x, np.empty((4, 3)))
    with pytest.raises(jk.ArgumentTypeError, match="out: expected"):
        call(x, x, np.empty((3, 4), np.int32))
    with pytest.raises(jk.ArgumentError):
        call(x, x, np.empty((3, 4, 1)))


def test_results_over_inputs() -> None:
    """Computed in place where the plain call does so; overlapping as in the plain call."""

    @njit
    def call(x: Any, out: Any) -> Any:
        return jk.softmax(x, out=out)

    @njit
    def product(a: Any, b: Any, out: Any) -> Any:
        return jk.matmul(a, b, out=out)

    whole = np.random.default_rng(0).standard_normal(40)
    for begin in (0, 1, 7):
        memory, expected = whole.copy(), jk.softmax(whole[:30])
        for _ in range(2):
            memory[:] = whole
            assert_same(call(memory[:30], memory[begin : begin + 30]), expected)
    square = np.random.default_rng(0).standard_normal((5, 5))
    for _ in range(3):
        a = square.copy()
        assert_same(product(a, a, a), jk.matmul(square, square))


def test_index_errors_write_nothing() -> None:
    @njit
    def call(table: Any, ids: Any, out: Any) -> Any:
        return jk.gather(table, ids, out=out)

    table, ids, out = np.ones((4, 3)), np.array([0, 3, 1]), np.zeros((3, 3))
    for _ in range(3):
        call(table, ids, out)
    out[:] = 7
    with pytest.raises(jk.DataIndexError, match="gather: ids"):
        call(table, np.array([0, 4, 1]), out)
    assert (out == 7).all()


def test_options_at_run_time() -> None:
    """Floats and ints within their limits; others raise as in the plain call."""

    @njit
    def norm(x: Any, eps: Any) -> Any:
        return jk.rms_norm(x, eps=eps)

    @njit
    def largest(x: Any, k: Any) -> Any:
        return jk.topk(x, k)

    x = np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32)
    for _ in range(2):
        for eps in (0.1, 1e-5, 0.0, 3):
            assert_same(norm(x, eps), jk.rms_norm(x, eps=eps))
        for k in (1, 4, 3, 20):
            assert_same(largest(x, k), jk.topk(x, k))
        for wrong in (np.nan, -1.0, np.inf):
            with pytest.raises(jk.AttrError, match="eps"):
                norm(x, wrong)
        for wrong_k in (21, 30, -1):
            with pytest.raises(jk.AttrError, match="k"):
                largest(x, wrong_k)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("x, axis=k", "axis: expected a compile-time constant"),
        ("x, 0, None, 5", "too many positional arguments"),
        ("x, nothing=1", "unexpected keyword argument"),
        ("", "missing a required argument: 'x'"),
        ("'text'", "x: expected an array of real numbers"),
        ("x, out=3", "out: expected an array"),
        ("x, axis=7", "axis: expected -1 to 0"),
        ("x + 1j", "x: expected an array of real numbers"),
    ],
)
def test_invalid_calls_are_typing_errors(call: str, message: str) -> None:
    function = caller(jk.softmax, ["x", "k"], call)
    with pytest.raises(numba.TypingError, match=message):
        function(np.ones(3), 0)


def test_pins_hold_in_compiled_code(through_python: list[str]) -> None:
    @njit
    def call(x: Any) -> Any:
        return jk.vexp(x)

    x = np.linspace(-3, 3, 50)
    call(x), call(x)
    del through_python[:]
    with jk.use(vexp="refer"):
        assert_same(call(x), np.exp(x))
        assert through_python == ["vexp"]
    call(x)
    assert through_python == ["vexp"]


def test_entry_point_in_a_process_that_imports_numba_first() -> None:
    """No other import is needed, and built-in functions stay numba's."""
    code = """
import math, numba, numpy as np, jitkernels as jk
from jitkernels import softmax
@numba.njit
def call(x):
    return jk.vexp(softmax(x)) * math.sin(0.5)
x = np.ones(3)
print(np.allclose(call(x), np.exp(np.ones(3) / 3) * math.sin(0.5)))
"""
    assert python(code) == "True\n"


def test_numba_alone_imports_only_the_hook() -> None:
    code = """
import sys, numba
numba.njit(lambda x: x + 1)(2)
print(sorted(name for name in sys.modules if name.startswith("jitkernels.")))
"""
    loaded = python(code)
    assert "jitkernels.dispatch.numba_extension'" in loaded
    assert "jitkernels.dispatch.operators" not in loaded


def test_every_parameter_by_position() -> None:
    """As in the plain function, with `out` behind the last one."""
    x = np.random.default_rng(0).standard_normal((3, 4))
    out = np.empty_like(x)
    call = caller(jk.softmax, ["x", "out"], "x, -1, out")
    assert_same(call(x, out), jk.softmax(x, -1))
    assert_same(out, jk.softmax(x, -1))
