"""The everyday functions take whatever NumPy users have: lists, strides, other types, ``out``, overlaps."""

import contextlib
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cases
import numpy as np
import oracles
import pytest
from numpy.lib.stride_tricks import as_strided

import jitkernels as jk
from jitkernels import functions, testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import ArgumentError, ArgumentTypeError, JitKernelsError
from jitkernels.signature import AnyArray

Keywords = dict[str, Any]
Row = Any
"""A row; ``call`` is what rows have and their base class has not."""


def example(row: Row, dtype: str = "float32", seed: int = 0) -> tuple[KernelAttr, Keywords]:
    """An attr that an everyday call can ask for, and that call's arguments by name."""
    parameters = row.parameters().parameters
    attrs = [case.attr for case in testing.ci_cases(row) if case.attr.fields()["dtype"] == dtype]
    for attr in [testing.middle(row, dtype), *reversed(attrs)]:
        signature = attr.signature()
        arrays = {
            p.name: a for p, a in zip(signature.arrays, signature.sample(seed), strict=True) if p.role == "in"
        }
        given = {key: attr.fields()[key] for key in parameters if key in attr.fields()} | arrays
        if _asks_for(row, given, attr):
            return attr, {key: given[key] for key in parameters if key in given}
    raise AssertionError(f"no ci case of {row.__name__} can be asked for by an everyday call")


def _asks_for(row: Row, given: Keywords, attr: KernelAttr) -> bool:
    try:
        return bool(row.call(**given).attr == attr)
    except JitKernelsError:
        return False


def true_results(row: Row, given: Keywords, dtype: str | None = None) -> list[AnyArray]:
    """The oracle's results in the caller's shapes."""
    call = row.call(**given)
    attr = call.attr if dtype is None else replace(call.attr, dtype=dtype)
    arrays = arguments_of(row, given, dtype)
    results = oracles.expected(attr, arrays)
    return [result.reshape(shape) for result, shape in zip(results, call.shapes, strict=True)]


def arguments_of(row: Row, given: Keywords, dtype: str | None = None) -> list[AnyArray]:
    """The arrays of the kernel that an everyday call comes to."""
    call = row.call(**given)
    attr = call.attr if dtype is None else replace(call.attr, dtype=dtype)
    inputs = iter(call.inputs)
    return [next(inputs) if p.role == "in" else np.zeros(p.shape, p.dtype) for p in attr.signature().arrays]


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def assert_right(row: Row, results: Any, given: Keywords, dtype: str = "float32", slack: float = 1) -> None:
    """Results are arrays of the right dtype, shape and values for arguments that are plain arrays."""
    attr = row.call(**given).attr
    expected = true_results(row, given)
    for got, right, parameter in zip(as_tuple(results), expected, attr.signature().outputs, strict=True):
        assert type(got) is np.ndarray
        assert (got.dtype, got.shape) == (np.dtype(dtype), right.shape)
        flat = right.reshape(parameter.shape)
        one = replace_outputs(attr, arguments_of(row, given), parameter.name)
        one(got.reshape(parameter.shape), flat, slack)


def replace_outputs(
    attr: KernelAttr, arrays: list[AnyArray], name: str
) -> Callable[[AnyArray, AnyArray, float], None]:
    """A comparison for one output of an attr."""
    outputs = attr.signature().outputs
    place = [parameter.name for parameter in outputs].index(name)

    def compare(got: AnyArray, right: AnyArray, slack: float) -> None:
        results: list[AnyArray] = [np.zeros(p.shape, p.dtype) for p in outputs]
        expected = [result.copy() for result in results]
        results[place], expected[place] = got, right
        testing.assert_close(attr, arrays, results, expected, attr.name, slack)

    return compare


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
    array: AnyArray = np.ndarray(
        value.shape, value.dtype, buffer=np.zeros(value.nbytes + 1, np.uint8), offset=1
    )
    array[...] = value
    return array


def as_double(value: AnyArray) -> AnyArray:
    return value.astype(np.float64)


def read_only(value: AnyArray) -> AnyArray:
    value = value.copy()
    value.flags.writeable = False
    return value


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
    """Of every row; what follows is asked of one row of each form."""
    _check_calls(row, ["plain"])


@pytest.mark.parametrize("row", cases.every_form())
def test_same_values_in_other_memory(row: Row) -> None:
    """Whatever the memory looks like, the values decide; the second call is as right as the first."""
    _check_calls(row, [form for form in SAME_VALUES if form != "plain"])


def _check_calls(row: Row, memory: Sequence[str]) -> None:
    failures = cases.Failures()
    for dtype, form in itertools.product(("float32", "float64"), memory):
        _, given = example(row, dtype)
        used = arrays_only(given, SAME_VALUES[form])
        with failures.gathered(f"{form} {dtype}"):
            for _ in range(3):
                results = function_of(row)(**used)
                assert_right(row, results, given, dtype, slack=2)
                assert_right(row, function_of(row)(*by_position(row, used)), given, dtype, slack=2)
    failures.tell()


@pytest.mark.parametrize("row", cases.every_form())
def test_lists_and_integers_count_as_double(row: Row) -> None:
    _, given = example(row, "float64")
    assert_right(row, function_of(row)(**arrays_only(given, lambda value: value.tolist())), given, "float64")
    integers = arrays_only(
        given, lambda value: np.rint(value).astype(np.int32) if value.dtype.kind == "f" else value
    )
    assert_right(row, function_of(row)(**integers), arrays_only(integers, _as_double), "float64", slack=2)


def _as_double(value: AnyArray) -> AnyArray:
    """What integers are computed as; those that are indices stay integers."""
    return value.astype(np.float64) if value.dtype == np.int32 else value


@pytest.mark.parametrize("row", cases.every_form())
def test_half_precision_counts_as_single(row: Row) -> None:
    _, given = example(row)
    half = arrays_only(given, lambda value: value.astype(np.float16) if value.dtype.kind == "f" else value)
    single = arrays_only(half, lambda value: value.astype(np.float32) if value.dtype.kind == "f" else value)
    assert_right(row, function_of(row)(**half), single)


@pytest.mark.parametrize("row", cases.every_form())
def test_not_numbers(row: Row) -> None:
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
def test_no_dimensions_and_no_elements(row: Row) -> None:
    """Either a clear error or a result; never a crash, never another exception."""
    _, given = example(row)
    for shape in ((), (0,), (0, 3), (3, 0), (0, 0), (2, 0, 3)):
        used = arrays_only(given, lambda value: np.zeros(shape, value.dtype))  # noqa: B023  # used at once
        try:
            results = as_tuple(function_of(row)(**used))
        except JitKernelsError:
            continue
        assert all(isinstance(result, np.ndarray) for result in results)


def outs_of(row: Row, given: Keywords) -> tuple[AnyArray, ...]:
    results = as_tuple(function_of(row)(**given))
    return tuple(np.full_like(result, np.nan) for result in results)


def passed(outs: tuple[AnyArray, ...]) -> Any:
    return outs if len(outs) > 1 else outs[0]


@pytest.mark.parametrize("row", cases.every_form())
def test_out(row: Row) -> None:
    """``out`` of any layout, and of a type that holds the result, is filled and given back."""
    _, given = example(row)
    failures = cases.Failures()
    for form in ("plain", "strided", "backwards", "fortran", "unaligned", "double"):
        make = SAME_VALUES.get(form, as_double)
        with failures.gathered(form):
            for _ in range(3):
                outs = tuple(make(out) for out in outs_of(row, given))
                assert function_of(row)(**given, out=passed(outs)) is passed(outs) or len(outs) > 1
                results = tuple(out.astype(np.float32) for out in outs)
                assert_right(row, passed(results), given)
    failures.tell()


@pytest.mark.parametrize("row", cases.every_form())
def test_out_by_position(row: Row) -> None:
    """After all parameters comes ``out``, in the compiled dispatcher and in Python."""
    _, given = example(row)
    parameters = row.parameters().parameters
    every = [given.get(key, parameter.default) for key, parameter in parameters.items()]
    for _ in range(3):
        outs = outs_of(row, given)
        function_of(row)(*every, passed(outs))
        assert_right(row, passed(outs), given)
        assert_right(row, function_of(row)(*every, None), given)
        assert_right(row, function_of(row)(**given, out=None), given)


@pytest.mark.parametrize("row", cases.every_form())
def test_wrong_out(row: Row) -> None:
    """A wrong ``out`` is an error that names it, and neither it nor an input is written."""
    _, given = example(row)
    function = function_of(row)
    out = np.zeros_like(outs_of(row, given)[0])
    several = len(outs_of(row, given)) > 1
    wrongs = [
        out.tolist(),
        out.astype(np.int64),
        out[:-1].copy(),
        out[np.newaxis].copy(),
        read_only(out),
        "text",
        5,
    ]
    for wrong in [*wrongs, (), (out, out, out, out)]:
        before = out.tobytes(), [value.tobytes() for value in given.values() if isinstance(value, np.ndarray)]
        if several and not isinstance(wrong, tuple):
            wrong = (wrong, out.copy())
        for _ in range(2):
            with pytest.raises((ArgumentError, ArgumentTypeError)) as caught:
                function(**given, out=wrong)
            assert "out" in str(caught.value)
            function(**given)
        assert before == (out.tobytes(), [v.tobytes() for v in given.values() if isinstance(v, np.ndarray)])


FOLDED: dict[str, Callable[[AnyArray], AnyArray]] = {
    "one element": lambda out: as_strided(out, out.shape, (0,) * out.ndim),
    "one row": lambda out: as_strided(out, out.shape, (0, *out.strides[1:])),
    "short rows": lambda out: as_strided(out, out.shape, (out.itemsize, *out.strides[1:])),
    "between elements": lambda out: as_strided(out, out.shape, (*out.strides[:-1], out.itemsize // 2)),
    "backwards": lambda out: as_strided(out, out.shape, (0,) * out.ndim)[::-1],
    "in double": lambda out: as_strided(out.astype(np.float64), out.shape, (0,) * out.ndim),
}
"""Memory of which two elements share some."""


@pytest.mark.parametrize("row", cases.every_row())
def test_out_that_overlaps_itself(row: Row) -> None:
    """Which of two results would be kept nobody says: refused, by Python and by the dispatcher, and nothing written."""
    _, given = example(row)
    failures = cases.Failures()
    for number, out in enumerate(outs_of(row, given)):
        for form, make in FOLDED.items():
            outs = [*outs_of(row, given)]
            outs[number] = make(out)
            if not functions._folds(outs[number]):
                continue
            before = outs[number].tobytes()
            with failures.gathered(f"{form} {number}"):
                for pinned in (False, False, True):
                    with (
                        jk.use(implementation="refer") if pinned else contextlib.nullcontext(),
                        pytest.raises(ArgumentError, match=r"out: expected .*whose own elements overlap"),
                    ):
                        function_of(row)(**given, out=passed(tuple(outs)))
                assert outs[number].tobytes() == before
    failures.tell()


def test_what_overlaps_itself() -> None:
    """Memory of any strides: what is taken has no element twice, and what slices and turns is taken."""
    generator = np.random.default_rng(0)
    x = np.ones((3, 2, 4), np.float32)
    taken = 0
    for _ in range(300):
        strides = tuple(4 * int(step) for step in generator.integers(-14, 15, 3))
        out = as_strided(np.zeros(256, np.float32)[128:], x.shape, strides)
        places = sum(np.multiply.outer(np.arange(n), s).reshape([-1 if e == d else 1 for e in range(3)])
            for d, (n, s) in enumerate(zip(x.shape, strides, strict=True)))  # fmt: skip
        apart = len(np.unique(places)) == x.size
        try:
            jk.vexp(x, out=out)
        except ArgumentError:
            assert functions._folds(out)
        else:
            taken += 1
            assert apart
            assert not functions._folds(out)
    assert taken > 10
    room = np.zeros((7, 5, 9, 8), np.float32)
    views = [room[::2, ::2, 1, ::2].transpose(order) for order in itertools.permutations(range(3))]
    views += [
        room[1].T[::-2, ::3],
        np.einsum("iij->ij", room[:, :5, :, 0][:5])[::-1],
        room[:0],
        room[:1, :, :1],
    ]
    for out in views:
        for _ in range(2):
            jk.vexp(np.ones(out.shape, np.float32), out=out)
        assert not functions._folds(out)


@pytest.mark.parametrize("row", cases.every_form())
def test_out_over_an_input(row: Row) -> None:
    """``out`` may be any part of the memory of an input: the result is that of separate arrays."""
    for place in ("same", "shifted", "backwards"):
        _check_out_over_inputs(row, place)


def _check_out_over_inputs(row: Row, place: str) -> None:
    _, given = example(row)
    for number, fresh in enumerate(outs_of(row, given)):
        for key, value in given.items():
            if not isinstance(value, np.ndarray) or value.dtype != fresh.dtype or value.size < fresh.size:
                continue
            for _ in range(2):
                room = np.zeros(value.size + 2, value.dtype)
                shared = room[1 : 1 + value.size].reshape(value.shape)
                shared[...] = value
                start = 1 if place == "shifted" else 0
                flat = room[1 + start : 1 + start + fresh.size]
                out = (flat[::-1] if place == "backwards" else flat).reshape(fresh.shape)
                outs = list(outs_of(row, given))
                outs[number] = out
                function_of(row)(**given | {key: shared}, out=passed(tuple(outs)))
                assert_right(row, passed(tuple(outs)), given, slack=2)


@pytest.mark.parametrize("row", cases.every_form())
def test_axis(row: Row) -> None:
    """Where there is an axis, any of them gives what moving it to the end and back gives."""
    parameters = row.parameters().parameters
    if "axis" not in parameters:
        return
    first = next(iter(parameters))
    value = np.random.default_rng(1).uniform(-2, 2, (3, 4, 5)).astype(np.float32)
    function = function_of(row)
    for axis in (-3, -2, -1, 0, 1, 2):
        expected = np.moveaxis(function(**{first: np.moveaxis(value, axis, -1).copy()}), -1, axis)
        np.testing.assert_allclose(function(**{first: value}, axis=axis), expected, rtol=1e-6)
        out = np.zeros_like(value)
        assert function(**{first: value}, axis=axis, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-6)
    for wrong in (3, -4, 1.5, "x", None):
        with pytest.raises(JitKernelsError) as caught:
            function(**{first: value}, axis=wrong)
        assert "axis" in str(caught.value)


@pytest.mark.parametrize("row", cases.every_form())
def test_elementwise_shapes_and_broadcasts(row: Row) -> None:
    """Kernels of arrays of one and the same shape take any shape, and several inputs are broadcast."""
    attr, given = example(row)
    if (
        len({array.shape for array in attr.signature().arrays}) > 1
        or len(attr.signature().arrays[0].shape) != 1
    ):
        return
    base = as_tuple(function_of(row)(**arrays_only(given, lambda value: value[:24])))[0]
    cube = arrays_only(given, lambda value: value[:24].reshape(2, 3, 4))
    for _ in range(2):
        assert as_tuple(function_of(row)(**cube))[0].tobytes() == base.tobytes()
    turned = arrays_only(cube, lambda value: value.transpose(2, 0, 1))
    assert np.array_equal(function_of(row)(**turned), base.reshape(2, 3, 4).transpose(2, 0, 1))
    if len(given) == 2:
        first, second = (value[:6] for value in given.values())
        crossed = function_of(row)(first[:, np.newaxis], second[np.newaxis])
        rows, columns = np.repeat(first, 6).reshape(6, 6), np.tile(second, (6, 1))
        assert np.array_equal(crossed, function_of(row)(rows, columns))
        assert np.array_equal(function_of(row)(first, 3), function_of(row)(first, np.full_like(first, 3)))


@pytest.mark.parametrize("row", cases.every_row())
def test_documentation(row: Row) -> None:
    """``help`` shows the formula and a signature with ``out``."""
    function = function_of(row)
    assert function.__name__ == row.kernel_type.name.lower()
    assert row.__doc__ is not None
    assert row.__doc__.split("\n")[0] in (function.__doc__ or "")
    assert list(inspect.signature(function).parameters) == [*row.parameters().parameters, "out"]


def test_a_first_call_with_out_is_remembered_too(fresh: Path) -> None:
    """Whoever only ever passes ``out`` gets the compiled dispatcher as well."""
    holder = functions._holder_of("vmul")
    x, z = np.ones(9, np.float32), np.empty(9, np.float32)
    for arguments, named in (((x, x), {"out": z}), ((x, x, z), {})):
        holder.forget()
        jk.vmul(*arguments, **named)
        assert holder._dispatch is not None
        assert len(holder._dispatch._listed) == 1
