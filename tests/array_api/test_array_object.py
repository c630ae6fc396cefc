"""The array object of `jk.xp`: values that share memory until they are written to, operators, protocols, errors."""

import concurrent.futures
import copy
import gc
import operator
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from array_api_cases import SAMPLES, all_lazy, operands_of, same
from hypothesis import given, settings
from hypothesis import strategies as st

import jitkernels as jk
from jitkernels.xp import array_object, elementwise_functions, expression

xp = jk.xp
__all__ = ["all_lazy"]
LARGE = array_object.MIN_LAZY_ELEMENTS
OPERATORS = {**elementwise_functions.OPERATORS, **elementwise_functions.COMPARISONS}


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def vector(count: int = LARGE) -> Any:
    return np.linspace(-2.0, 3.0, count)


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators(name: str, is_lazy: bool, request: pytest.FixtureRequest) -> None:
    """Of arrays, of Python numbers on either side, and in place."""
    if is_lazy:
        request.getfixturevalue("all_lazy")
    operate, ufunc = getattr(operator, f"__{name}__"), OPERATORS[name]
    spelled = next(key for key, one in elementwise_functions.UFUNCS.items() if one is ufunc)
    with np.errstate(all="ignore"):
        for sample in SAMPLES:
            x, y = operands_of(spelled, sample, 2)
            number: Any = {"b": True, "u": 2, "i": 2, "f": 1.5, "c": 1.5 + 0j}[sample.dtype.kind]
            try:
                expected = operate(x, y)
            except TypeError:
                with pytest.raises(TypeError):
                    operate(xp.asarray(x), xp.asarray(y))
                continue
            ours = xp.asarray(x)
            same(operate(ours, xp.asarray(y)), expected, 64)
            same(operate(ours, number), operate(x, number), 64)
            if not (name == "pow" and sample.dtype.kind == "i"):
                same(operate(number, xp.asarray(y)), operate(number, y), 64)
            if expected.dtype == x.dtype and name in elementwise_functions.OPERATORS:
                before = ours
                ours = getattr(operator, f"__i{name}__")(ours, xp.asarray(y))
                assert ours is before
                same(ours, expected, 64)
                np.testing.assert_array_equal(x, operands_of(spelled, sample, 2)[0])


def test_nothing_is_computed_before_it_is_needed() -> None:
    x = xp.asarray(vector())
    y = xp.exp(x) * 2 + 1
    assert not y.is_evaluated
    assert (y.shape, y.dtype, y.ndim, y.size) == (x.shape, np.float64, 1, LARGE)
    total = xp.sum(y)
    assert not total.is_evaluated
    np.testing.assert_allclose(float(total), (np.exp(vector()) * 2 + 1).sum())
    assert y.is_evaluated  # as something refers to it: it is one more result of the same loop
    assert xp.asarray(vector(8)).is_evaluated
    assert (xp.asarray(vector(8)) + 1).is_evaluated


def test_structures_are_compiled_once() -> None:
    count = len(expression.structures())
    for i in range(4):
        x, y = xp.asarray(vector() + i), xp.asarray(vector() * i)
        np.testing.assert_allclose(np.asarray(xp.tan(x) * y - i), np.tan(vector() + i) * (vector() * i) - i, rtol=1e-12)
    assert len(expression.structures()) == count + 1
    compiled = [*expression.structures().values()][-1]
    assert compiled.stats().compiles == 1


def test_large_expressions_are_evaluated_in_parts() -> None:
    x = xp.asarray(vector())
    y = x
    for _ in range(3 * expression.MAX_LAZY_NODES):
        y = y * 0.5 + 1.0
    expected = vector()
    for _ in range(3 * expression.MAX_LAZY_NODES):
        expected = expected * 0.5 + 1.0
    np.testing.assert_allclose(np.asarray(y), expected)


@pytest.mark.parametrize("count", [8, LARGE])
def test_arrays_are_values(count: int) -> None:
    """Writing to one array changes no other one: no operand of a later evaluation, no view, no base of a view."""
    memory = vector(count)
    x = xp.asarray(memory)
    doubled, part = x * 2, x[:4]
    x += 1
    x[1] = 7.0
    part[0] = 9.0
    np.testing.assert_array_equal(memory, vector(count))
    np.testing.assert_array_equal(np.asarray(doubled), vector(count) * 2)
    assert float(x[1]) == 7.0
    assert float(x[0]) == vector(count)[0] + 1
    assert [float(part[0]), float(part[1])] == [9.0, vector(count)[1]]
    other = x[2:]
    x[2] = 1.5
    assert float(other[0]) != 1.5
    reshaped = xp.reshape(x, (-1, 2))
    x[0] = 4.0
    assert float(reshaped[0, 0]) != 4.0


def test_repeated_assignments_copy_once() -> None:
    x = xp.zeros(1000)
    places = set()
    for i in range(5):
        x[i] = i
        places.add(address(x._elements()))
    assert len(places) == 1
    assert float(xp.sum(x)) == 10


def test_indexing() -> None:
    memory = np.arange(24.0).reshape(2, 3, 4)
    x = xp.asarray(memory)
    for key in (0, (1, 2, 3), slice(1), (..., 0), (None, 1), (slice(None), slice(None, None, -1)), np.s_[:, 1:, ::2]):
        same(x[key], memory[key])
    same(x[x > 5], memory[memory > 5])
    same(x[xp.asarray([1, 0])], memory[[1, 0]])
    same(x[xp.asarray([1, 0]), xp.asarray([2, 2])], memory[[1, 0], [2, 2]])
    x[x > 20] = 0.0
    memory[memory > 20] = 0.0
    x[0, ...] = xp.ones((3, 4))
    memory[0] = 1
    same(x, memory)
    with pytest.raises(TypeError, match="cannot assign"):
        x[0] = xp.ones((3, 4), dtype=xp.complex128)
    with pytest.raises(IndexError):
        x[5]


def test_conversions_to_python() -> None:
    x = xp.asarray(2.5)
    assert (float(x), int(x), complex(x), bool(x)) == (2.5, 2, 2.5 + 0j, True)
    assert [0, 1, 2][xp.asarray(1)] == 1
    with pytest.raises(TypeError):
        operator.index(x)
    with pytest.raises(TypeError):
        float(xp.ones(2))
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        hash(x)
    assert len(xp.ones(3)) == 3
    assert repr(xp.asarray([1, 2])) == "xp.array([1, 2])"


@pytest.mark.parametrize("count", [8, LARGE])
def test_memory_is_shared_with_numpy(count: int) -> None:
    """In and out, by DLPack and by the array protocol."""
    memory = vector(count)
    for x in (xp.asarray(memory), xp.from_dlpack(memory), xp.asarray(memory, copy=False)):
        assert address(np.asarray(x)) == address(memory)
        assert address(np.from_dlpack(x)) == address(memory)
        assert x.__dlpack_device__() == (1, 0)
    assert address(np.asarray(xp.asarray(memory, copy=True))) != address(memory)
    result = xp.exp(xp.asarray(memory))
    exported = np.from_dlpack(result)
    assert address(exported) == address(np.asarray(result))
    result[0] = 5.0  # copies, as others may have the memory
    assert exported[0] != 5.0


def test_exported_memory_outlives_its_array() -> None:
    memory = vector().copy()
    owner = weakref.ref(memory)
    exported = np.from_dlpack(xp.asarray(memory))
    lazy = xp.asarray(memory) + 1
    del memory
    gc.collect()
    assert owner() is not None
    np.testing.assert_array_equal(exported, vector())
    np.testing.assert_array_equal(np.asarray(lazy), vector() + 1)
    del exported, lazy
    gc.collect()
    assert owner() is None


def test_threads_share_expressions() -> None:
    x = xp.asarray(vector())
    shared = xp.exp(x)

    def read(i: int) -> float:
        return float(xp.sum(shared * i + xp.sin(x)))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = [*pool.map(read, range(64))]
    expected = [float((np.exp(vector()) * i + np.sin(vector())).sum()) for i in range(64)]
    np.testing.assert_allclose(found, expected)


def test_numpy_functions_take_arrays() -> None:
    x = xp.asarray(vector())
    lazy = np.exp(x)
    assert type(lazy) is xp.Array
    assert not lazy.is_evaluated
    same(lazy, np.exp(vector()))
    same(np.add(vector(), x), vector() * 2)
    same(vector() + x, vector() * 2)
    same(np.add.reduce(x), vector().sum(), 1e5)
    same(np.concatenate([x, x]), np.concatenate([vector(), vector()]))
    same(np.median(x), np.median(vector()))


def test_compiled_functions_take_arrays() -> None:
    function = jk.jit(lambda x: np.exp(x) * 2)
    lazy = xp.asarray(vector()) + 1
    found = function(lazy)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, np.exp(vector() + 1) * 2)
    generic = jk.jit(lambda x: xp.exp(x) + xp.sin(x))
    np.testing.assert_allclose(generic(vector()), np.exp(vector()) + np.sin(vector()))


def test_copies_and_pickles() -> None:
    x = xp.asarray(vector()) * 2
    for one in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        same(one, vector() * 2)
        one[0] = 5.0
        assert float(x[0]) == -4.0


def test_errors() -> None:
    x = xp.ones(3)
    wrong: Any
    for wrong in (
        lambda: xp.ones(3, device="cuda"), lambda: x.to_device("cuda"), lambda: xp.asarray(1, copy=False),
        lambda: xp.asarray(x, dtype=xp.int8, copy=False), lambda: x.__array_namespace__(api_version="1999.01"),
        lambda: x.T, lambda: x.mT, lambda: xp.asarray(vector()) + xp.ones(LARGE + 1),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"expected|broadcast"):
            wrong()
    with pytest.raises(TypeError):
        xp.add(1, 2)
    with pytest.raises(TypeError):
        xp.astype(xp.ones(2, dtype=xp.complex64), xp.float32)
    y = xp.ones(LARGE, dtype=xp.int32)
    with pytest.raises(TypeError, match="cannot assign"):
        y += 1.5
    with pytest.raises(OverflowError):
        xp.ones(LARGE, dtype=xp.int8) + 300
    y = xp.ones(1)
    with pytest.raises(jk.ArgumentError, match="expected a result of shape"):
        y += xp.ones(3)


def test_namespace_information() -> None:
    info = xp.__array_namespace_info__()
    assert xp.asarray([1.0]).__array_namespace__() is xp
    assert xp.asarray([1.0]).__array_namespace__(api_version=xp.__array_api_version__) is xp
    assert info.default_device() == xp.ones(1).device
    assert info.devices() == ["cpu"]
    assert set(info.dtypes(kind="integral")) == {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
    assert len(info.dtypes()) == 13
    assert xp.asarray([1.0]).dtype == info.default_dtypes()["real floating"]
    assert xp.asarray([1]).dtype == info.default_dtypes()["integral"]
    assert xp.asarray([1j]).dtype == info.default_dtypes()["complex floating"]
    assert xp.argmax(xp.ones(3)).dtype == info.default_dtypes()["indexing"]
    assert {"boolean indexing", "data-dependent shapes", "max dimensions"} == set(info.capabilities())
    with pytest.raises(ValueError, match="kind: expected one of"):
        info.dtypes(kind="nonsense")


SHAPES = [(), (1,), (4,), (3, 1), (3, 4), (0,), (2, 3, 4)]
BINARY = [np.add, np.subtract, np.multiply, np.maximum, np.less, np.hypot]
UNARY = [np.exp, np.negative, np.abs, np.sqrt, np.sin]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_random_expressions(data: st.DataObject) -> None:
    _check_program(data)


@pytest.mark.full
@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.data())
def test_many_random_expressions(data: st.DataObject) -> None:
    _check_program(data)


def _check_program(data: st.DataObject) -> None:
    """Programs of functions, reductions, assignments and views give what NumPy gives on copies."""
    limit, at_once = array_object.MIN_LAZY_ELEMENTS, expression.COMPILED_AT_ONCE
    modules: Any = (array_object, elementwise_functions, __import__("jitkernels.xp.dispatch").xp.dispatch)
    for module in modules:
        module.MIN_LAZY_ELEMENTS = data.draw(st.sampled_from([0, 0, 2, limit]))
    try:
        expression.COMPILED_AT_ONCE = data.draw(st.sampled_from([0, at_once]))
        with np.errstate(all="ignore"):
            _run_program(data)
    finally:
        expression.COMPILED_AT_ONCE = at_once
        for module in modules:
            module.MIN_LAZY_ELEMENTS = limit


def _run_program(data: st.DataObject) -> None:
    number = np.random.default_rng(data.draw(st.integers(0, 5)))
    plain: list[Any] = [number.standard_normal(shape) for shape in SHAPES]
    ours: list[Any] = [xp.asarray(one, copy=True) for one in plain]
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(["binary", "unary", "sum", "number", "in place", "assign", "view"]))
        i, j = (data.draw(st.integers(0, len(plain) - 1)) for _ in range(2))
        x, y, a, b = plain[i], plain[j], ours[i], ours[j]
        if kind in ("binary", "in place"):
            ufunc: Any = data.draw(st.sampled_from(BINARY))
            try:
                result = ufunc(x, y)
            except (ValueError, TypeError) as error:
                with pytest.raises(type(error)):
                    ufunc(a, b)
                continue
            if kind == "binary":
                plain.append(np.asarray(result))
                ours.append(ufunc(a, b))
            elif result.shape == x.shape and x.dtype == result.dtype == np.result_type(x, y):
                plain[i] = np.asarray(x + y)
                ours[i] += b
        elif kind == "unary" and x.dtype != bool:
            ufunc = data.draw(st.sampled_from(UNARY))
            plain.append(np.asarray(ufunc(x)))
            ours.append(ufunc(a))
        elif kind == "sum":
            axis = data.draw(st.sampled_from([None, *range(x.ndim)]))
            keepdims = data.draw(st.booleans())
            plain.append(np.asarray(np.sum(x, axis=axis, keepdims=keepdims)))
            ours.append(xp.sum(a, axis=axis, keepdims=keepdims))
        elif kind == "number" and x.dtype != bool:
            scalar = data.draw(st.sampled_from([2, 0.5, -1, True]))
            plain.append(np.asarray(x * scalar))
            ours.append(a * scalar)
        elif kind == "assign" and x.ndim and x.shape[0]:
            plain[i] = x.copy()
            plain[i][0] = 3
            ours[i][0] = 3
        elif kind == "view" and x.ndim:
            plain.append(x[::-1])
            ours.append(a[::-1])
    for found, expected in zip(ours, plain, strict=True):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-12)


def test_exponents_of_two_types_are_two_structures() -> None:
    x = jk.xp.asarray(np.full(100_000, 2**40))
    for exponent in (2, 2.0, 2):
        with np.errstate(all="ignore"):
            expected = np.power(np.asarray(x), exponent)
            result = np.asarray(x**exponent)
        assert result.dtype == expected.dtype
        assert np.array_equal(result, expected)


@pytest.mark.parametrize("count", [10, 100_000])
@pytest.mark.parametrize(
    "write",
    [
        lambda a: np.add.at(a, [0], 1),
        lambda a: np.copyto(a, 7),
        lambda a: np.put(a, [0], 7),
        lambda a: np.place(a, np.asarray(a) >= 0, [7]),
        lambda a: np.putmask(a, np.asarray(a) >= 0, [7]),
        lambda a: np.put_along_axis(a, np.array([0]), 7, 0),
        lambda a: np.fill_diagonal(jk.xp.reshape(a, (2, -1)), 7),
    ],
)
def test_functions_that_write_change_one_array(write: Any, count: int) -> None:
    a = jk.xp.asarray(np.arange(float(count)))
    view, copied, pending = a[:2], copy.copy(a), a + 1
    write(a)
    assert np.array_equal(view, [0.0, 1.0])
    assert np.array_equal(copied, np.arange(float(count)))
    assert np.array_equal(pending, np.arange(1.0, count + 1.0))


def test_out_of_numpy_is_returned() -> None:
    out = np.empty(3)
    assert np.add(jk.xp.ones(3), 1, out=out) is out
    assert out.tolist() == [2.0] * 3
