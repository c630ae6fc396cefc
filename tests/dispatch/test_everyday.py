"""Everyday functions accept what NumPy users pass: lists, strides, other dtypes, ``out``, overlap."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cases
import numpy as np
import oracles
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.schema_queries import integer_options_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.errors import AttrError, JitKernelsError
from jitkernels.tools import testing
from jitkernels.tools.testing.expected import Truth

Keywords = dict[str, Any]
Row = Any
"""A row; ``call`` is what rows have and their base class has not."""


def example(row: Row, dtype: str = "float32", seed: int = 0) -> tuple[KernelAttr, Keywords]:
    """An attr that an everyday call can ask for, and that call's arguments by name."""
    attrs = [case.attr for case in testing.ci_cases(row) if case.attr.fields()["dtype"] == dtype]
    for attr in [testing.middle(row, dtype), *reversed(attrs)]:
        given = testing.named(attr, seed)
        if _asks_for(row, given, attr):
            return attr, given
    raise AssertionError(f"no ci case of {row.__name__} can be requested by an everyday call")


def _asks_for(row: Row, given: Keywords, attr: KernelAttr) -> bool:
    try:
        return bool(row.call(**given).attr == attr)
    except JitKernelsError:
        return False


def arguments_of(row: Row, given: Keywords) -> list[AnyArray]:
    """The arrays of the kernel that an everyday call comes to."""
    call = row.call(**given)
    inputs, arrays = iter(call.inputs), call.attr.signature().arrays
    return [next(inputs) if p.role == "in" else np.zeros(p.shape, p.numpy) for p in arrays]


def in_dtype(results: Sequence[AnyArray], dtype: str) -> tuple[AnyArray, ...]:
    """Results in a dtype; integers stay integers."""
    return tuple(r.astype(dtype if r.dtype.kind == "f" else r.dtype.newbyteorder("=")) for r in results)


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


class Right:
    """What is right for arguments that are plain arrays: computed once, for however many results."""

    def __init__(self, row: Row, given: Keywords, slack: float = 1) -> None:
        call = row.call(**given)
        self.attr, self.shapes = call.attr, call.shapes
        self.outputs = self.attr.signature().outputs
        arrays = arguments_of(row, given)
        expected = zip(oracles.expected(self.attr, arrays), self.outputs, strict=True)
        self.truth = Truth(self.attr, arrays, [one.reshape(p.shape) for one, p in expected], slack)

    def check(self, results: Any, dtype: str = "float32") -> None:
        """Results are arrays of the right dtype, shape and values."""
        for got, shape, parameter in zip(as_tuple(results), self.shapes, self.outputs, strict=True):
            assert type(got) is np.ndarray
            wanted = dtype if parameter.dtype.startswith("float") else parameter.dtype
            assert (got.dtype, got.shape) == (np.dtype(wanted), shape)
        flat = [got.reshape(p.shape) for got, p in zip(as_tuple(results), self.outputs, strict=True)]
        self.truth.assert_close(flat, self.attr.name)


def assert_right(row: Row, results: Any, given: Keywords, dtype: str = "float32", slack: float = 1) -> None:
    """Results are arrays of the right dtype, shape and values for arguments that are plain arrays."""
    Right(row, given, slack).check(results, dtype)


def function_of(row: Row) -> Any:
    return getattr(jk, row.kernel_type.name.lower())


def by_position(row: Row, given: Keywords) -> list[Any]:
    """The arguments as far as they are given, defaults in between."""
    parameters = row.parameters().parameters
    last = max(list(parameters).index(key) for key in given)
    return [given.get(key, parameter.default) for key, parameter in list(parameters.items())[: last + 1]]


def arrays_only(given: Keywords, change: Callable[[AnyArray], Any]) -> Keywords:
    """The arguments with every array changed."""
    return {key: change(value) if isinstance(value, np.ndarray) else value for key, value in given.items()}


def strided(value: AnyArray) -> AnyArray:
    return np.repeat(value, 3, axis=-1)[..., ::3]


def backwards(value: AnyArray) -> AnyArray:
    return value[::-1].copy()[::-1]


def unaligned(value: AnyArray) -> AnyArray:
    array: AnyArray = np.ndarray(value.shape, value.dtype, buffer=np.zeros(value.nbytes + 1, np.uint8), offset=1)
    array[...] = value
    return array


def as_double(value: AnyArray) -> AnyArray:
    return value.astype(np.float64)


def read_only(value: AnyArray) -> AnyArray:
    value = value.copy()
    value.flags.writeable = False
    return value


class Giving:
    """Provides an array through `__array__`, which only Python calls."""

    def __init__(self, array: AnyArray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        return self.array


class Own(np.ndarray[Any, Any]):
    """A subclass of ndarray."""


SAME_VALUES: dict[str, Callable[[AnyArray], Any]] = {
    "plain": lambda value: value,
    "strided": strided,
    "backwards": backwards,
    "fortran": np.asfortranarray,
    "unaligned": unaligned,
    "byte_swapped": lambda value: value.astype(value.dtype.newbyteorder()),
    "read_only": read_only,
    "subclass": lambda value: value.view(Own),
    "middle_of_a_larger": lambda value: np.pad(value, 2)[tuple(slice(2, 2 + n) for n in value.shape)],
}


@pytest.mark.parametrize("row", cases.every_row())
def test_plain_calls(row: Row) -> None:
    """Of every row; later tests take one row of each form."""
    _check_calls(row, ["plain"])


@pytest.mark.parametrize("row", cases.every_form())
def test_memory_layouts_do_not_change_results(row: Row) -> None:
    """Neither in the first call nor in the second."""
    _check_calls(row, [form for form in SAME_VALUES if form != "plain"])


def _check_calls(row: Row, memory: Sequence[str]) -> None:
    failures = cases.Failures()
    for dtype in ("float32", "float64"):
        _, given = example(row, dtype)
        right = Right(row, given, slack=2)
        for form in memory:
            used = arrays_only(given, SAME_VALUES[form])
            with failures.gathered(f"{form} {dtype}"):
                for _ in range(3):
                    right.check(function_of(row)(**used), dtype)
                    right.check(function_of(row)(*by_position(row, used)), dtype)
    failures.tell()


@pytest.mark.parametrize("row", cases.every_form())
def test_lists_and_integers_convert_to_float64(row: Row) -> None:
    _, given = example(row, "float64")
    lists = {name: value.tolist() if may_be_list(row, name, value) else value for name, value in given.items()}
    assert_right(row, function_of(row)(**lists), given, "float64")
    integers = arrays_only(given, lambda value: np.rint(value).astype(np.int32) if value.dtype.kind == "f" else value)
    floats = [name for name, value in given.items() if getattr(value, "dtype", None) == "float64"]
    doubles = integers | {name: integers[name].astype(np.float64) for name in floats}
    assert_right(row, function_of(row)(**integers), doubles, "float64", slack=2)


def may_be_list(row: Row, name: str, value: Any) -> bool:
    """Whether a list stands for this array: lists have the default of a dtype that arrays decide."""
    if not isinstance(value, np.ndarray):
        return False
    field = next((array.dtype for array in row.arrays if array.name == name), None)
    return field is None or field not in row.known_fields() or value.dtype.name == getattr(row, field)


@pytest.mark.parametrize("row", cases.every_form())
def test_float16_converts_to_float32(row: Row) -> None:
    _, given = example(row)
    half = arrays_only(given, lambda value: value.astype(np.float16) if value.dtype.kind == "f" else value)
    single = arrays_only(half, lambda value: value.astype(np.float32) if value.dtype.kind == "f" else value)
    assert_right(row, function_of(row)(**half), single)


@pytest.mark.parametrize("row", cases.every_form())
def test_arguments_that_are_no_numbers(row: Row) -> None:
    _, given = example(row)
    for key in (key for key, value in given.items() if isinstance(value, np.ndarray)):
        for wrong in ("text", b"bytes", object(), {}, given[key].astype(complex), given[key].astype(object)):
            with pytest.raises(JitKernelsError) as caught:
                function_of(row)(**given | {key: wrong})
            assert row.kernel_type.name.lower() in str(caught.value)


@pytest.mark.parametrize("row", cases.every_form())
def test_wrong_names_and_counts(row: Row) -> None:
    _, given = example(row)
    function = function_of(row)
    parameters = row.parameters().parameters
    for arguments, named in (
        ((), {}),
        (tuple(given.values()), {"nonsense": 1}),
        ((None,) * (len(parameters) + 2), {}),
        (tuple(given.values()), {next(iter(given)): 1}),
    ):
        with pytest.raises(TypeError) as caught:
            function(*arguments, **named)
        assert isinstance(caught.value, JitKernelsError)


@pytest.mark.parametrize("row", cases.every_form())
def test_scalars_and_empty_arrays(row: Row) -> None:
    """A result or an error of this package; never a crash or another exception."""
    _, given = example(row)
    for shape in ((), (0,), (0, 3), (3, 0), (0, 0), (2, 0, 3)):
        used = arrays_only(given, lambda value: np.zeros(shape, value.dtype))  # noqa: B023  # used at once
        try:
            results = as_tuple(function_of(row)(**used))
        except JitKernelsError:
            continue
        assert all(isinstance(result, np.ndarray) for result in results)


@pytest.mark.parametrize("row", cases.every_form())
def test_axis(row: Row) -> None:
    """Any axis gives the result of moving it to the end and back."""
    parameters = row.parameters().parameters
    if "axis" not in parameters:
        return
    first = next(iter(parameters))
    value = np.random.default_rng(1).uniform(-2, 2, (3, 4, 5)).astype(np.float32)
    whole = {name: 2 for name in integer_options_of(row) if parameters[name].default is inspect.Parameter.empty}
    function = partial(function_of(row), **whole)
    for axis in (-3, -2, -1, 0, 1, 2):
        expected = function(**{first: np.moveaxis(value, axis, -1).copy()})
        wanted = [np.moveaxis(e, -1, axis) if e.ndim == value.ndim else e for e in as_tuple(expected)]
        outs = tuple(np.zeros_like(e) for e in wanted)
        out = outs if isinstance(expected, tuple) else outs[0]
        assert function(**{first: value}, axis=axis, out=out) is out
        for got, written, right in zip(as_tuple(function(**{first: value}, axis=axis)), outs, wanted, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-6)
            np.testing.assert_allclose(written, right, rtol=1e-6)
    for wrong in (3, -4, 1.5, "x", None):
        with pytest.raises(JitKernelsError) as caught:
            function(**{first: value}, axis=wrong)
        assert "axis" in str(caught.value)


@pytest.mark.parametrize("row", cases.every_form())
def test_elementwise_shapes_and_broadcasts(row: Row) -> None:
    """Elementwise functions take any shape, and broadcast several inputs."""
    attr, given = example(row)
    if (
        len({array.shape for array in attr.signature().arrays}) > 1
        or len(attr.signature().arrays[0].shape) != 1
        or not attr.signature().inputs
    ):
        return
    base = as_tuple(function_of(row)(**arrays_only(given, lambda value: value[:24])))[0]
    cube = arrays_only(given, lambda value: value[:24].reshape(2, 3, 4))
    for _ in range(2):
        assert as_tuple(function_of(row)(**cube))[0].tobytes() == base.tobytes()
    transposed = arrays_only(cube, lambda value: value.transpose(2, 0, 1))
    result = as_tuple(function_of(row)(**transposed))[0]
    assert np.array_equal(result, base.reshape(2, 3, 4).transpose(2, 0, 1))
    if len(attr.signature().inputs) == 2:
        first, second = (value[:6] for value in given.values())
        crossed = function_of(row)(first[:, np.newaxis], second[np.newaxis])
        rows, columns = np.repeat(first, 6).reshape(6, 6), np.tile(second, (6, 1))
        assert np.array_equal(crossed, function_of(row)(rows, columns))
        assert np.array_equal(function_of(row)(first, 3), function_of(row)(first, np.full_like(first, 3)))


@pytest.mark.parametrize("row", cases.every_row())
def test_float_options_are_checked(row: Row) -> None:
    """Bounds are inclusive, as in the attr."""
    _, given = example(row)
    fields = row.known_fields()
    for name in (name for name in row.options if name in fields and fields[name].kind == "float"):
        function, field = function_of(row), fields[name]
        for bound, way in ((field.least, -np.inf), (field.most, np.inf)):
            if np.isinf(bound):
                continue
            for _ in range(3):
                with np.errstate(all="ignore"):
                    function(**given | {name: bound})
                beyond = float(np.nextafter(np.float32(bound), np.float32(way)))
                with pytest.raises(AttrError, match=f"{name}: expected"):
                    function(**given | {name: beyond})


@pytest.mark.parametrize("row", cases.every_row())
def test_documentation(row: Row) -> None:
    """``help`` shows the formula and a signature with ``out``."""
    function = function_of(row)
    assert function.__name__ == row.kernel_type.name.lower()
    assert row.__doc__ is not None
    assert row.__doc__.split("\n")[0] in (function.__doc__ or "")
    assert list(inspect.signature(function).parameters) == [*row.parameters().parameters, "out"]
