"""The ``out`` of everyday functions: any layout, memory of the inputs, and what is refused."""

import contextlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from test_everyday import SAME_VALUES, Keywords, Row, as_double, as_tuple, assert_right, example, function_of, read_only

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.dispatch import operators, outputs
from jitkernels.errors import ArgumentError, ArgumentTypeError


def outs_of(row: Row, given: Keywords) -> tuple[AnyArray, ...]:
    results = as_tuple(function_of(row)(**given))
    return tuple(np.full_like(result, np.nan if result.dtype.kind == "f" else 77) for result in results)


def passed(outs: tuple[AnyArray, ...]) -> Any:
    return outs if len(outs) > 1 else outs[0]


@pytest.mark.parametrize("row", cases.every_form())
def test_out(row: Row) -> None:
    """``out`` of any layout, and of a dtype that holds the result, is filled and returned."""
    _, given = example(row)
    failures = cases.Failures()
    for form in ("plain", "strided", "backwards", "fortran", "unaligned", "double"):
        make = SAME_VALUES.get(form, as_double)
        with failures.gathered(form):
            for _ in range(3):
                plain = outs_of(row, given)
                outs = tuple(make(out) for out in plain)
                assert function_of(row)(**given, out=passed(outs)) is passed(outs) or len(outs) > 1
                results = tuple(out.astype(one.dtype) for out, one in zip(outs, plain, strict=True))
                assert_right(row, passed(results), given)
    failures.tell()


@pytest.mark.parametrize("row", cases.every_form())
def test_out_in_a_tuple(row: Row) -> None:
    """As in NumPy: the element is returned, and None allocates."""
    _, given = example(row)
    outs = outs_of(row, given)
    if len(outs) > 1:
        return
    assert function_of(row)(**given, out=outs) is outs[0]
    assert_right(row, outs[0], given)
    assert_right(row, function_of(row)(**given, out=(None,)), given)


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
def test_invalid_out_is_rejected(row: Row) -> None:
    """The error names ``out``, and neither it nor an input is written."""
    _, given = example(row)
    function = function_of(row)
    out = np.zeros_like(outs_of(row, given)[0])
    several = len(outs_of(row, given)) > 1
    wrongs = [
        out.tolist(),
        out.astype(np.int64 if out.dtype.kind == "f" else np.bool_),
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
    """Python and the dispatcher reject it, and write nothing: the order of stores is undefined."""
    _, given = example(row)
    failures = cases.Failures()
    for number, out in enumerate(outs_of(row, given)):
        for form, make in FOLDED.items():
            if out.dtype.kind != "f" and form == "in double":
                continue
            outs = [*outs_of(row, given)]
            outs[number] = make(out)
            if not outputs.overlaps_itself(outs[number]):
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


def test_detection_of_self_overlap() -> None:
    """Accepted strides reach no element twice; all slices and transposes are accepted."""
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
            assert outputs.overlaps_itself(out)
        else:
            taken += 1
            assert apart
            assert not outputs.overlaps_itself(out)
    assert taken > 10
    room = np.zeros((7, 5, 9, 8), np.float32)
    views = [room[::2, ::2, 1, ::2].transpose(order) for order in itertools.permutations(range(3))]
    views += [room[1].T[::-2, ::3], np.einsum("iij->ij", room[:, :5, :, 0][:5])[::-1], room[:0], room[:1, :, :1]]
    for out in views:
        for _ in range(2):
            jk.vexp(np.ones(out.shape, np.float32), out=out)
        assert not outputs.overlaps_itself(out)


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


def test_first_calls_with_out_fill_the_dispatcher(fresh: Path) -> None:
    """Users who always pass ``out`` get the compiled dispatcher as well."""
    holder = operators._holder("vmul")
    x, z = np.ones(9, np.float32), np.empty(9, np.float32)
    for arguments, named in (((x, x), {"out": z}), ((x, x, z), {})):
        holder.forget()
        jk.vmul(*arguments, **named)
        assert holder._table is not None
        assert len(holder._table._listed) == 1


def test_absent_results_leave_no_stale_arrays() -> None:
    """Machine code serves a call with fewer results than the one before, whatever the slots held."""
    p, g, m, v, most = np.random.default_rng(0).random((5, 100), np.float32)
    served: list[Any] = []

    def watch(_: Any, event: str, called: Any) -> None:
        if event == "call":
            served.append(called)

    for _ in range(3):
        jk.adam(p, g, m, v, most, out=(p, m, v, most))
        jk.adam(most, g, m, v, out=(most, m, v))
    functions = [jk.adam] * 20
    sys.setprofile(watch)
    try:
        for function in functions:
            function(p, g, m, v, most, out=(p, m, v, most))
            function(most, g, m, v, out=(most, m, v))
    finally:
        sys.setprofile(None)
    assert not served
