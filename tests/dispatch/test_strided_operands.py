"""Strided operands, combined with scalars: bitwise the results of contiguous arrays."""

import itertools

import numpy as np
import pytest
from mixed import arguments, bits, inputs_of, numbers, rows, wide
from test_everyday import Row, function_of
from test_everyday_forms import compiled

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.dispatch import operators
from jitkernels.runtime.loading.compiled_code import Code
from jitkernels.tools.testing.guard_pages import Guarded


@pytest.mark.parametrize("row", rows())
@pytest.mark.parametrize("kinds", [("float32", "float32"), ("float64", "float64"), ("int16", "float32")], ids=str)
def test_strides_of_any_size(row: Row, kinds: tuple[str, str]) -> None:
    """Of one array or both, of either sign, zero strides, and across the ends of blocks."""
    function = function_of(row)
    for n in (2, 16, 17, 511, 513, 1030):
        for step in (-3, -2, -1, 0, 2, 3, 16):
            given = arguments(row, kinds[: inputs_of(row)], n)
            for which in (given, given[:1]):
                apart = [gaps(array, step) for array in which] + given[len(which) :]
                expected = bits(function(*[np.ascontiguousarray(array) for array in apart]))
                assert bits(compiled(function, *apart)) == expected, (kinds, n, step)
                out = np.empty(n, wide(given))
                assert compiled(function, *apart, out=out) is out
                assert bits(out) == expected, (kinds, n, step)


def gaps(array: AnyArray, step: int) -> AnyArray:
    """The same elements so many places apart; of no step the first alone, again and again."""
    if step == 0:
        return np.broadcast_to(array[:1], array.shape)
    room = np.full(len(array) * abs(step), 7, array.dtype)[::step]
    room[:] = array
    return room


@pytest.mark.parametrize("row", rows())
@pytest.mark.parametrize("step", [-3, -2, -1, 2, 3])
def test_out_between_the_elements_of_an_operand(row: Row, step: int) -> None:
    """Wherever a result overlaps an input, before it or behind it, all inputs are read first."""
    n = 530
    function = function_of(row)
    end = n * abs(step)
    for start in (0, 1, end - n, end - n + 1, end - 1, end):
        room = numbers(end + n, "float64", start)
        first = room[:end][::step]
        others = arguments(row, ["float64"] * inputs_of(row), n)[1:]
        expected = bits(function(first.copy(), *others))
        out = room[start : start + n]
        function(first, *others, out=out)
        assert bits(out) == expected, (step, start)


NUMBERS = (
    2.5, -0.0, 3, True, 2**40 + 1, 1e300, float("nan"), np.float32(0.1), np.float64(0.1), np.float16(0.1), np.int8(-3),
    np.uint16(3), np.int64(2**53 + 1), np.bool_(True), np.array(0.1), np.array(0.1, np.float32), np.array(7),
    np.array(0.1, ">f8"), np.zeros(9, np.uint8)[1:].view(np.float64)[0:].reshape(()),
)  # fmt: skip


@pytest.mark.usefixtures("eager_casting_nests")
@pytest.mark.parametrize("row", [p for p in rows() if inputs_of(p.values[0]) == 2])
@pytest.mark.parametrize("nests", [True, False])
def test_scalars_beside_arrays(row: Row, nests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests read them in place, where blockwise calls fill a buffer with them."""
    for owner, name, value in () if nests else ((operators, "CAST_NEST_SECONDS", 1e9), (Code, "is_loaded", False)):
        monkeypatch.setattr(owner, name, value)
    function = function_of(row)
    for dtype, n in itertools.product(("float32", "float64", "int16"), (1, 33, 960) if nests else (5, 511)):
        x = numbers(n, dtype, 0)
        for number, other in itertools.product(NUMBERS, (False, True)):
            with np.errstate(all="ignore"):
                kept = np.asarray(number, None if type(number) not in (int, bool) else np.float64)
                weak = type(number) in (float, int, bool)
                own = wide([x] if weak else [x, kept])
                given, whole = x.astype(own), np.full(n, kept.astype(own))
            expected = bits(function(*((whole, given) if other else (given, whole))))
            label = (dtype, n, repr(number), other)
            pair = (number, x) if other else (x, number)
            assert bits(compiled(function, *pair)) == expected, label
            square = (number, x[np.newaxis]) if other else (x[np.newaxis], number)
            assert bits(compiled(function, *square)[0]) == expected, label
            if x.dtype == own:
                again = x.copy()
                function(*((number, again) if other else (again, number)), out=again)
                assert bits(again) == expected, label


@pytest.mark.usefixtures("eager_casting_nests")
@pytest.mark.parametrize("row", rows())
def test_nests_of_strided_elements(row: Row) -> None:
    """They equal those of contiguous arrays, and read nothing beyond them."""
    function = function_of(row)
    for dtype, n in itertools.product(("float32", "float64"), (1, 7, 16, 33, 48, 960)):
        given = arguments(row, [dtype] * inputs_of(row), n)
        expected = bits(function(*given))
        single = [(2, 1), (1, 3), (4, 4), (5, 2), (-2, 3), (7, -1)]
        some = single if dtype == "float32" else [(3, 2), (1, 4), (2, -2), (-1, 6)]
        for gaps in {gaps[: len(given)] for gaps in some}:
            for side in ("start", "end"):
                rooms = [
                    Guarded(np.repeat(array[:: 1 if gap > 0 else -1], abs(gap))[: (n - 1) * abs(gap) + 1], side)
                    for array, gap in zip(given, gaps, strict=True)
                ]
                apart = [room.array[::gap] for room, gap in zip(rooms, gaps, strict=True)]
                assert bits(compiled(function, *apart)) == expected, (dtype, n, gaps)
                assert all(room.intact() for room in rooms)
