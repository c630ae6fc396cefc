"""Complex numbers: every function at special values, beside other dtypes, in all layouts; programs and derivatives."""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization
from jitkernels.compiler.ir import special_functions
from jitkernels.compiler.transforms.complex_arithmetic import ARITHMETIC
from jitkernels.compiler.transforms.complex_functions import FUNCTIONS
from jitkernels.errors import ArgumentTypeError

COMPLEX = ("complex64", "complex128")
PLANE = {"complex64": np.float32, "complex128": np.float64}
random = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _compile_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 0.0)


def numbers(dtype: str, *shape: int) -> Any:
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


PRODUCTS = {"multiply", "square"}
"""Functions that round in another way where products leave the range, as NumPy's vectors and scalars do."""


def special_values(name: str, dtype: str) -> Any:
    """All pairs of special parts."""
    info: Any = np.finfo(np.dtype(dtype))
    ends = [] if name in PRODUCTS else [-info.tiny] if getattr(np, name).nin == 2 else [info.max / 8, -info.tiny]
    ends = [] if name == "divide" else ends
    parts = np.array([0.0, -0.0, 1, -1, 2.5, -3e-5, np.inf, -np.inf, np.nan, *ends], PLANE[dtype])
    found = np.empty((parts.size, parts.size), dtype)
    found.real, found.imag = parts[:, None], parts
    return found.ravel()


def with_warnings(function: Callable[..., Any], *arguments: Any) -> tuple[Any, set[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, {str(one.message) for one in caught}


def distance(found: Any, expected: Any, size: Any) -> Any:
    """Errors in units of the larger of a component and a norm; NaN, infinities and signs of zeros are exact."""
    info = np.finfo(expected.dtype)
    with np.errstate(all="ignore"):
        unit = np.maximum(np.maximum(np.abs(expected), size) * info.eps, info.smallest_subnormal)
        error = np.abs(found.astype(float) - expected.astype(float)) / unit
    is_same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    is_zero = (found == 0) & (expected == 0) & (np.signbit(found) != np.signbit(expected))
    return np.where(is_zero, np.inf, np.where(is_same, 0, np.where(np.isfinite(expected), error, np.inf)))


def check(found: Any, expected: Any, units: float, what: str = "") -> None:
    """Fail unless results agree within rounding: `units` of the components, for products of the norm."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected, what)
        return
    parts = [(found, expected)] if expected.dtype.kind == "f" else [
        (found.real, expected.real), (found.imag, expected.imag)
    ]  # fmt: skip
    size = np.where(np.isfinite(expected), np.abs(expected), 0) if expected.dtype.kind == "c" else 0
    for part, other in parts:
        assert np.all(distance(part, other, size) <= units), what


def explained(compiled: Any, *arguments: Any) -> None:
    text = str(compiled.explain(*arguments))
    assert "falls back" not in text, text
    assert ", 0 calls of NumPy" in text, text


NAMES = sorted({*ARITHMETIC, *FUNCTIONS} - {"logical_and", "logical_or", "logical_xor"})
UNARY = [name for name in NAMES if getattr(np, name).nin == 1]
BINARY = [name for name in [*NAMES, "logical_and", "logical_or", "logical_xor"] if getattr(np, name).nin == 2]
LIMITS = {"log": 8, "log2": 8, "log10": 8, "tan": 16, "tanh": 16, "exp2": 8}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_operand(name: str, dtype: str) -> None:
    """Values, special ones too, dtypes and warnings are NumPy's."""
    ufunc = getattr(np, name)
    compiled = jk.jit(lambda x: ufunc(x))
    for x in (special_values(name, dtype), 2 * numbers(dtype, 257), numbers(dtype, 1), numbers(dtype, 0)):
        (found, issued), (expected, due) = with_warnings(compiled, x), with_warnings(ufunc, x)
        check(found, expected, LIMITS.get(name, 6), f"{name} {dtype}")
        assert issued == due
    explained(compiled, numbers(dtype, 9))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_operands(name: str, dtype: str) -> None:
    ufunc, special = getattr(np, name), special_values(name, dtype)
    compiled = jk.jit(lambda x, y: ufunc(x, y))
    x, y = (side.ravel() for side in np.meshgrid(special, special))
    (found, issued), (expected, due) = with_warnings(compiled, x, y), with_warnings(ufunc, x, y)
    check(found, expected, 6, f"{name} {dtype}")
    assert issued == due
    explained(compiled, x, y)


REALS = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", *COMPLEX)
NUMBERS = (2, 2.5, True, 1 - 2j, np.float32(3), np.complex64(1j), np.int8(2))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_beside_other_dtypes(dtype: str) -> None:
    """Promotion is NumPy's, whichever side the complex numbers are on."""

    def mixed(x: Any, y: Any) -> Any:
        return x * y + 1, y - x, np.where(x == y, x, y), x / (y + 2), y != x

    compiled = jk.jit(mixed)
    x = numbers(dtype, 33)
    for y in (*(np.arange(33).astype(other) for other in REALS), *NUMBERS):
        for one, other in ((x, y), (y, x)):
            for found, expected in zip(compiled(one, other), mixed(one, other), strict=True):
                check(found, expected, 8, f"{y!r}")
    explained(compiled, x, 2.5)


def layouts(array: Any) -> list[Any]:
    """The same numbers in other orders, with gaps, backwards, broadcast, and at addresses that floats may have."""
    rows, columns = array.shape
    gaps = np.empty((2 * rows, 3 * columns), array.dtype)[::2, ::3]
    backwards = np.empty_like(array)[::-1, ::-1]
    memory = np.empty(array.nbytes + 32, np.uint8)
    start = -memory.ctypes.data % 16 + array.itemsize // 2
    shifted = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    for other in (gaps, backwards, shifted):
        other[...] = array
    return [array, np.asfortranarray(array), gaps, backwards, shifted, np.broadcast_to(array[:1], array.shape)]


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, y: x * y - 1,
    "reversed": lambda x, y: x[:, ::-1] * 2 + y,
    "transposed": lambda x, y: (x.T * 2).copy() + y.T,
    "stencil": lambda x, y: x[:, 1:] + x[:, :-1] * y[:, 1:],
    "concatenated": lambda x, y: np.concatenate([x, y * 2], 1),
    "reshaped": lambda x, y: (x + y).reshape(-1),
    "gathered": lambda x, y: x[np.arange(x.shape[0])[::-1]] * y,
    "columns": lambda x, y: (x * y).sum(0) + x[0],
    "rows": lambda x, y: x - x.mean(1, keepdims=True) + np.cumsum(y, 1),
    "plane": lambda x, y: (x * y.conj()).real + np.abs(x),
    "matrices": lambda x, y: x @ y.T,
    "norms": lambda x, y: np.linalg.norm(x * 2, axis=1) + np.linalg.norm(y) + np.linalg.norm(y, 1, axis=1),
}
FEW_SHAPES, LAYOUT_SHAPES = ("product", "stencil", "rows"), [(2, 5), (9, 16)]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", MOVES)
def test_layouts_and_tails(name: str, dtype: str) -> None:
    function = MOVES[name]
    compiled = jk.jit(function)
    shapes = [(2, columns) for columns in (range(3, 34) if name in FEW_SHAPES else (3, 8, 17))]
    for shape in [*LAYOUT_SHAPES, *shapes, (7, 3), (40, 70)]:
        x, y = numbers(dtype, *shape), numbers(dtype, *shape)
        for one, other in zip(layouts(x), layouts(y), strict=True) if shape in LAYOUT_SHAPES else [(x, y)]:
            found, right = compiled(one, other), function(one.copy(), other.copy())
            assert (found.dtype, found.shape) == (right.dtype, right.shape)
            np.testing.assert_allclose(found, right, rtol=0, atol=np.finfo(dtype).eps * 64 * (1 + np.abs(right).max()))
    explained(compiled, x, y)


def _in_place(z: Any, y: Any) -> Any:
    z *= 2
    z[1:] = z[:-1] - 1j
    z.real[::2] = 0
    z.imag += y.real
    z[::3] /= 1 + 1j
    z[2], z[3] = 5, 2.5
    return z.real


def _elements(z: Any, i: Any, v: Any) -> Any:
    z[i] = v * 1j
    return z[i[::-1]] + 1


def _mandelbrot(c: Any, counts: Any) -> None:
    for j in range(c.shape[0]):
        z, n = 0j, 0
        while n < 50 and abs(z) < 2:
            z = z * z + c[j]
            n += 1
        counts[j] = n


def _python(z: complex, a: float) -> Any:
    s: Any = 0
    for k in range(4):
        s = s * z + complex(a, k) ** 2
    if s.real > 0:
        s = s.conjugate()
    return s / (z + 2), abs(s), s == z, s.imag, -s


def _recurrence(z: Any) -> Any:
    result = np.zeros(z.shape[0], complex)
    total = z[0]
    for k in range(z.shape[0]):
        total = total * 0.5 + z[k]
        result[k] = total
    return result


def _arrays_in_loops(z: Any, steps: int) -> Any:
    u = np.zeros_like(z)
    for k in range(steps):
        u = np.where(np.abs(u) <= 2, u * u + z, u)
        u[1:-1] = 0.5j * (u[2:] + u[:-2]) * k
    return u


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "in place": (_in_place, lambda: (numbers("complex128", 30), numbers("complex128", 30))),
    "elements": (_elements, lambda: (numbers("complex64", 9), np.array([3, 1, -2]), numbers("complex64", 3))),
    "mandelbrot": (_mandelbrot, lambda: (numbers("complex128", 60), np.zeros(60, np.int64))),
    "python numbers": (_python, lambda: (0.3 - 0.4j, 0.7)),
    "recurrence": (_recurrence, lambda: (numbers("complex128", 40),)),
    "arrays in loops": (_arrays_in_loops, lambda: (numbers("complex128", 40), 5)),
    "creation": (
        lambda x: (
            np.full(3, 1j),
            np.zeros(2, complex),
            x + 1j * x,
            np.empty_like(x, complex).shape,
            2j * np.arange(4),
        ),
        lambda: (np.arange(5.0),),
    ),
    "spectral step": (
        lambda u, w, dt: u * np.exp(1j * w * dt),
        lambda: (numbers("complex128", 50), np.arange(50.0), 0.01),
    ),
}


def _copies(values: Any) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


@pytest.mark.parametrize("backend", ["native", "numba", "interpreter"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, backend: str) -> None:
    function, given = PROGRAMS[name]
    compiled, arguments = jk.jit(function, backend=backend), given()
    here, there = _copies(arguments), _copies(arguments)
    found, expected = compiled(*here), function(*there)
    for one, other in zip(_flat(found) + here, _flat(expected) + there, strict=True):
        assert type(one) is type(other)
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-4 if "64" in str(getattr(other, "dtype", "")) else 1e-12)
            assert getattr(one, "dtype", 0) == getattr(other, "dtype", 0)
    if backend == "native":
        explained(compiled, *arguments)


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def test_views_of_planes() -> None:
    """What a call returns of an argument's planes is a view, as NumPy's."""
    z = numbers("complex128", 9)
    real, imag = jk.jit(lambda z: (z.real, z[1:].imag))(z)
    assert np.shares_memory(real, z)
    assert np.shares_memory(imag, z)
    imag[0] = 7
    assert z[1].imag == 7


def test_errors_are_pythons() -> None:
    """Where Python raises for complex numbers, so do compiled functions."""
    functions: list[Any] = [lambda z: z / 0j, lambda z: z < 1, lambda z: abs(z * 1.5e108), lambda z: z // 1]
    for function in functions:
        with pytest.raises(Exception) as expected:  # noqa: PT011  # which one Python says
            function(1e200 + 1e200j)
        with pytest.raises(type(expected.value)):
            jk.jit(function)(1e200 + 1e200j)


def test_casts_to_reals_warn() -> None:
    """NumPy warns that it drops the imaginary part, and so do compiled functions."""
    z = numbers("complex128", 5)
    with pytest.warns(np.exceptions.ComplexWarning):
        np.testing.assert_array_equal(jk.jit(lambda z: (z * 2).astype(float) + 1)(z), z.real * 2 + 1)


def _carried(z: Any) -> Any:
    s = 0j
    for k in range(z.shape[0]):
        s = s * 0.5 + z[k] * z[k]
    return abs(s)


def _whole(z: Any) -> Any:
    result = np.zeros(z.shape[0], complex)
    for k in range(z.shape[0]):
        result[k] = z[k] * (k + 1j)
    return (result.real * result.imag).sum()


LOSSES: dict[str, Callable[[Any], Any]] = {
    "norm": lambda z: (np.abs(z) ** 2).sum(),
    "real part": lambda z: (z * z * z.conj()).real.sum(),
    "functions": lambda z: np.abs(np.log(z) + np.sqrt(z) * np.exp(z)).sum(),
    "quotient": lambda z: (np.sin(z) * np.cosh(z) / (z + 3)).imag.sum(),
    "tangent": lambda z: np.tanh(z).imag.sum() + np.angle(z).sum(),
    "views": lambda z: np.abs(np.concatenate([z[::-1] * z[0], z])[::2]).sum(),
    "products": lambda z: np.abs(np.outer(z, z) @ z).sum(),
    "carried": _carried,
    "whole": _whole,
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name: str) -> None:
    """``df/dx - 1j * df/dy``, as JAX has it."""
    loss, z, step = LOSSES[name], numbers("complex128", 4), 1e-6
    found = jk.grad(loss)(z)
    for i, unit in enumerate(np.eye(4)):
        along = [(loss(z + d * unit) - loss(z - d * unit)) / (2 * step) for d in (step, 1j * step)]
        np.testing.assert_allclose(found[i], along[0] - 1j * along[1], rtol=1e-5, atol=1e-7)


def test_directional_and_holomorphic_derivatives() -> None:
    def function(z: Any, w: Any) -> Any:
        return z * np.exp(w)

    z, w, along, weights = (numbers("complex128", 6) for _ in range(4))
    _, pushed = jk.jvp(function, (z, w), (along, along))
    np.testing.assert_allclose(pushed, along * np.exp(w) * (1 + z))
    _, pull = jk.vjp(function, z, w)
    for found, expected in zip(pull(weights), (weights * np.exp(w), weights * z * np.exp(w)), strict=True):
        np.testing.assert_allclose(found, expected)
    assert jk.grad(lambda x: np.abs(np.exp(1j * x)).sum())(np.arange(3.0)).dtype == np.float64


def _pair(x: Any, y: Any) -> Any:
    return complex(x, y), complex(x, -y), x


RESULTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two": (lambda z: (z + 1, z * 2), (1 + 2j,)),
    "beside a float": (lambda z: (abs(z), z + 1j, z.real), (1 + 2j,)),
    "made": (_pair, (4.0, 5.0)),
    "in a dict": (lambda z: {"a": z * 1j, "b": z * 2}, (1 + 2j,)),
    "beside constants": (lambda z: (z * 1j, 3, z.real, z * z), (1 + 2j,)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_several_numbers_are_returned(name: str) -> None:
    """Each complex number takes 16 bytes of the stack."""
    function, arguments = RESULTS[name]
    agree(function, *(lambda value=value: value for value in arguments))


@pytest.mark.parametrize("name", special_functions.FUNCTIONS.values())
def test_special_functions_refuse_complex_operands(name: str) -> None:
    function = getattr(special_functions, name)
    operands = [np.array([0.5 + 1j])] * len(inspect.signature(function).parameters)
    with pytest.raises(ArgumentTypeError, match=f"{name}: expected real numbers, got complex128"):
        function(*operands)
