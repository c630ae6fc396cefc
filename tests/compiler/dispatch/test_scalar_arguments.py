"""Scalar arguments of compiled functions: promotion, sizes, branches, and the number of specializations."""

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given, reasons, same

import jitkernels as jk

NUMBERS: tuple[Any, ...] = (
    2, 3, 0, 1, -1, -2, 127, True, False, 2.5, 0.0, -0.0, float("inf"), float("nan"), np.float16(2), np.float32(2),
    np.float64(2), np.int8(3), np.uint8(200), np.int64(-5), np.uint64(7), np.bool_(True),
)  # fmt: skip
TYPES = ("f8", "f4", "f2", "i8", "i4", "i1", "u1", "u8", "?")


def compiles(function: Any) -> int:
    return sum(map(len, function._specializations.values()))


def mixed(a: Any, k: Any) -> Any:
    return a * k, k + a, a / (k + 100), np.maximum(a, k), a > k, np.float32(1) * k, k


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", TYPES)
def test_promotion(dtype: str) -> None:
    for number in NUMBERS:
        agree(mixed, lambda: array(4, dtype=dtype), given(number), calls=2, backend="interpreter")


@pytest.mark.parametrize("number", [300, -1, -200, 2**40, 2**63, 2**64])
def test_ints_that_a_dtype_cannot_hold(number: int) -> None:
    for dtype in ("i1", "u1", "i4", "i8", "u8"):
        agree(lambda a, k: a + k, functools.partial(array, 4, dtype=dtype), given(number))
    compiled = jk.jit(lambda a, k: a + k)
    small = array(4, dtype="i1")
    same(compiled(small, 3), small + 3)
    with pytest.raises(OverflowError):
        compiled(small, 300)
    same(compiled(small, 4), small + 4)


def test_scalars_do_not_recompile() -> None:
    compiled = jk.jit(lambda a, k, f: a * k + f)
    x = array(5)
    for k, f in ((2, 0.5), (3, 1.5), (7, -2.0), (1000, 0.0), (0, 1e300), (-5, -0.0)):
        same(compiled(x, k, f), x * k + f)
    assert compiles(compiled) == 1


def sized(a: Any, k: int) -> Any:
    return (a[:k], a[k:] * 2, np.zeros(k), np.arange(k) + a.sum(), k * 2, k // 2, k % 3, k / 2, k**2, -k, k > 3, a / k)


def test_ints_that_are_sizes() -> None:
    for number in (1, 2, 3, 5):
        agree(sized, lambda: array(8), given(number))
    compiled = jk.jit(sized)
    for number in (4, 5, 6):  # and not 7, which leaves one element: that is code of its own
        same(compiled(array(8), number), sized(array(8), number))
    assert compiles(compiled) == 1


def decided(a: Any, k: float) -> Any:
    if k > 0:
        return a * k
    return a - k if k == -1 else a + 1


def test_branches_on_numbers() -> None:
    for number in (1.5, -1.0, -2.0, 0.0, -0.0, float("nan"), float("inf"), 3, -1):
        agree(decided, lambda: array(4), given(number))
    compiled = jk.jit(decided, profile=True)  # without it, calls of so little are NumPy's
    for number in (1.5, 2.5, 100.0, -3.0, -4.0, -1.0):
        same(compiled(array(4), number), decided(array(4), number))
    assert compiles(compiled) == 3


def computed(a: Any, k: float) -> Any:
    whole = a.shape[0]
    return (
        math.sqrt(whole) * a, a / math.sqrt(whole), a * math.sqrt(abs(k)), 1 / whole * a, (k * 2 + 1) * a, k / whole,
        max(whole, 3), min(a.shape), f"{whole}", float(k), int(k), round(k, 1), abs(k), a * (k / 3), a * k**2,
    )  # fmt: skip


def test_arithmetic_of_python() -> None:
    for number in (2.0, 0.25, 7):
        agree(computed, lambda: array(4), given(number))


def test_zero_division_errors() -> None:
    compiled = jk.jit(lambda a, k: a * (1.0 / k))
    same(compiled(array(3), 2.0), array(3) * 0.5)
    with pytest.raises(ZeroDivisionError):
        compiled(array(3), 0.0)
    same(compiled(array(3), 4.0), array(3) * 0.25)


def test_extents_in_arithmetic_serve_all_sizes() -> None:
    def function(a: Any) -> Any:
        n = a.shape[0]
        return a.sum() / n, (a * 2.0) / a.size, 1 / n, n * 0.5, n, n + 1, a[: n // 2], a[-n // 2 :], 2 * n - 1

    compiled = jk.jit(function)
    for size in range(4, 40, 2):
        same(compiled(array(size)), function(array(size)))
    assert compiles(compiled) == 1


def test_operators_and_functions_by_type() -> None:
    def function(a: Any) -> Any:
        return a**2, a**0.5, a**-1, a**1, a**3.0, 2**a, abs(a), +a, a % 2, a // 2, divmod(a, 2)

    with np.errstate(all="ignore"):
        for dtype in ("f8", "f4", "f2"):
            agree(function, given(np.abs(array(4, dtype=dtype)) + 1))
    agree(lambda a: (a**2, ~a, a & 3, a | 1, a ^ a, a << 1, a >> 1), lambda: array(4, dtype="i4"))


def test_powers_of_bools_have_numpys_dtype() -> None:
    compiled, bools = jk.jit(lambda a, k: a**k), array(4, dtype="?")
    for number in (3, 2, 0, 2, True, 2.0, 1):
        same(compiled(bools, number), bools**number)
    agree(lambda a, k: (a[0] ** k, a[0] ** 2, a**2, a[0] ** 3), given(bools), given(2))


@pytest.mark.parametrize("kind", [np.longlong, np.ulonglong])
def test_scalar_types_with_equal_representations(kind: Any) -> None:
    agree(lambda k: (k, k * 2, type(k).__name__), given(kind(3)), plain=True)


def test_other_dtypes_fall_back() -> None:
    compiled = agree(lambda a: a * 2, lambda: array(3).astype(np.clongdouble), plain=True)
    assert "dtype complex256" in reasons(compiled)[0]
    for dtype in (object, np.longdouble, "M8[s]", ">f8"):
        agree(lambda a: a[:2] == a[0], given(array(3).astype(int).astype(dtype)), plain=True)
    agree(lambda a, b: a == b, lambda: array(3), lambda: "text", plain=True)


def test_products_are_rounded_below_level_2() -> None:
    """Bit for bit like NumPy's; from level 2 on, products and sums are contracted."""
    a, b, c = np.random.default_rng(0).standard_normal((3, 1000))
    plain, together = (jk.jit(opt_level=level)(lambda a, b, c: a * b + c)(a, b, c) for level in (1, 3))
    np.testing.assert_array_equal(plain, a * b + c)
    assert (together != plain).any()
    np.testing.assert_allclose(together, plain, atol=1e-15)


def test_fusion_options() -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    x = np.random.default_rng(0).random((40, 50))
    kernels = {}
    for name, options in (("all", {}), ("no", {"fuse_reduce": False}), ("two", {"max_fusion_size": 2})):
        compiled: Any = jk.jit(**options)(softmax)
        np.testing.assert_allclose(compiled(x), softmax(x), rtol=1e-12)
        kernels[name] = compiled.stats().kernels
    assert kernels["all"] == 1
    assert min(kernels["no"], kernels["two"]) > 2


@pytest.mark.parametrize("lies", ["plain", "transposed", "steps"])
def test_products_in_any_layout_are_kernels(lies: str) -> None:
    """A fallback would run NumPy between two segments, 50 times slower."""
    random = np.random.default_rng(0)
    b = {
        "plain": random.random((6, 7)),
        "transposed": random.random((7, 6)).T,
        "steps": random.random((12, 14))[::2, ::2],
    }[lies]
    a = random.random((5, 6))
    compiled: Any = jk.jit(lambda a, b: a @ b + 1)
    for _ in range(2):
        np.testing.assert_allclose(compiled(a, b), a @ b + 1)
    ((found,),) = compiled._specializations.values()
    assert [type(step).__name__ for step in found.program.steps] == ["Segment"]
    assert any(found.links.values())


def test_batches_of_products() -> None:
    random = np.random.default_rng(0)
    compiled: Any = jk.jit(lambda a, b: a @ b - 1)
    for one, other in (((3, 5, 6), (3, 6, 7)), ((3, 5, 6), (6, 7)), ((2, 1, 5, 6), (3, 6, 4))):
        a, b = random.random(one), random.random(other)
        np.testing.assert_allclose(compiled(a, b), a @ b - 1)


@pytest.mark.parametrize("number", [2**70, -(2**65), np.uint64(2**63), np.uint64(3), 2**63 - 1, -(2**63), True])
def test_ints_that_are_no_valid_extents(number: Any) -> None:
    def rolled(a: Any, k: Any) -> Any:
        return np.roll(a, k)

    def sliced(a: Any, k: Any) -> Any:
        return a[k:] if k > 0 else a[:k]

    def filled(a: Any, k: Any) -> Any:
        return np.zeros(k) + a

    for function in (rolled, sliced, filled):
        if function is not filled or number == 3 or number is True:
            compiled = jk.jit(function, profile=True)
            for _ in range(2):
                assert outcome(compiled, array(10), number) == outcome(function, array(10), number)


def outcome(function: Any, *args: Any) -> Any:
    """Return the result of a call as a list, or its error."""
    try:
        return function(*args).tolist()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("given_", [2.5, np.float32(2), np.array(2.0), float, "f4", np.dtype("f4"), np.float32, None])
def test_dtype_arguments(given_: Any) -> None:
    for function in (lambda a, k: a.astype(k), lambda a, k: np.zeros(3, k) + a[:3], lambda a, k: np.arange(k)):
        compiled = jk.jit(function, profile=True)
        for _ in range(2):
            assert outcome(compiled, array(10), given_) == outcome(function, array(10), given_)


def test_type_of_traced_values() -> None:
    def typed(a: Any, k: Any, n: Any) -> Any:
        if type(a) is not np.ndarray or type(a.shape[0]) is not int or type(k) is not float or type(n) is not int:
            return a
        return a + isinstance(type(k), type) + issubclass(type(type(k)), type) + (type(a[0]) is np.float64)

    compiled = agree(typed, lambda: array(10), given(2.5), given(3))
    assert not reasons(compiled)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_linspace_between_numbers_of_any_kind() -> None:
    """The dtype follows from those of both ends."""
    ends = (2, 2.5, *(np.dtype(name).type(3) for name in ("f8", "f4", "f2", "i8", "i1", "?")))
    for first, last in itertools.product(ends, ends):
        for dtype in (None, "f4"):
            function = functools.partial(np.linspace, dtype=dtype)
            backend = "native" if first is last else "interpreter"
            agree(lambda a, b, n, f=function: f(a, b, n), given(first), given(last), given(7), calls=2, backend=backend)


AXES: tuple[Any, ...] = (0, 1, -1, np.int8(1), True, False, None, 1.0, 2, "0", (0, 1))
TAKING_AN_AXIS: dict[str, Any] = {
    "sum": np.sum, "max": np.max, "mean": np.mean, "std": np.std, "argmax": np.argmax, "cumsum": np.cumsum,
    "any": np.any, "sort": np.sort, "swapaxes": lambda x, axis: x.swapaxes(axis, 0), "flip": np.flip,
    "stack": lambda x, axis: np.stack([x, x], axis=axis), "expand_dims": np.expand_dims,
    "concatenate": lambda x, axis: np.concatenate([x, x], axis=axis), "transpose": lambda x, axis: x.transpose(axis, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKING_AN_AXIS)
def test_axes_of_any_kind(name: str) -> None:
    """What NumPy refuses as an axis is refused in its words."""
    function = TAKING_AN_AXIS[name]
    compiled = jk.jit(lambda x, axis: function(x, axis=axis), backend="interpreter")
    for axis in AXES:
        outcomes: list[Any] = []
        for called in (compiled, function):
            try:
                outcomes.append((called(array(3, 4), axis=axis).tolist(),))
            except (TypeError, ValueError) as error:
                outcomes.append((type(error), str(error)))
        assert len(outcomes[0]) == len(outcomes[1]), (axis, outcomes)
        if len(outcomes[1]) == 2:
            assert outcomes[0] == outcomes[1], axis
        else:
            np.testing.assert_allclose(outcomes[0][0], outcomes[1][0], err_msg=str(axis))
