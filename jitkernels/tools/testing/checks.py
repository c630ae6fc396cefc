"""What a kernel must do: checks of one callable, each of which says how much it looked at.

The variants of a kernel are checked one after the other, so that the last truths are remembered.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels import accuracy
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import DataIndexError
from jitkernels.signature import Array
from jitkernels.testing import data
from jitkernels.testing.guards import Guarded
from jitkernels.testing.truth import Oracle, Truth, upcast_reference

Function = Callable[..., Any]


def check_values(
    attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = "", seed: int = 0
) -> None:
    """Outputs are right and wholly written, inputs as before, and nothing around the arrays is touched."""
    truth = _truth_of_sample(attr, oracle, seed)
    for side in ("start", "end"):
        guarded = [Guarded(array, side) for array in truth.arrays]
        returned = function(*[guard.array for guard in guarded])
        assert returned is None, f"{label} returned {returned!r} instead of None"
        for parameter, guard in zip(truth.signature.arrays, guarded, strict=True):
            assert guard.intact(), f"{label} wrote outside {parameter.name}"
        truth.assert_right([guard.array for guard in guarded], label)


@functools.lru_cache(maxsize=2)
def _truth_of_sample(attr: KernelAttr, oracle: Oracle, seed: int) -> Truth:
    return Truth.by(oracle, attr, attr.signature().sample(seed))


def check_data(
    attr: KernelAttr,
    functions: Mapping[str, Function],
    oracle: Oracle = upcast_reference,
    *,
    kinds: Sequence[str] | None = None,
) -> None:
    """Outputs of functions, by label, are right for every kind of data, or for those named."""
    for number, name in enumerate(data.kinds(attr)):
        if kinds is not None and name not in kinds:
            continue
        truth = _truth_of_kind(attr, oracle, name, number)
        for label, function in functions.items():
            used = [array.copy() for array in truth.arrays]
            with np.errstate(all="ignore"):
                function(*used)
            truth.assert_right(used, f"{label} with {name}")


@functools.lru_cache(maxsize=1)
def _truth_of_kind(attr: KernelAttr, oracle: Oracle, name: str, seed: int) -> Truth:
    return Truth.by(oracle, attr, data.sample(attr, data.kinds(attr)[name], seed))


def check_in_place(
    attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = ""
) -> int:
    """Each output that may be an input gives the same result when it is; and one array may be several inputs.

    Returns how many pairs of arguments were the same array.
    """
    signature = attr.signature()
    pairs = [
        (i, j)
        for i, j in itertools.permutations(range(len(signature.arrays)), 2)
        if _may_be_one(signature.arrays[i], signature.arrays[j])
        and (i < j or signature.arrays[j].role != "in")
    ]
    together = {signature.arrays[place].name for pair in pairs for place in pair}
    alone = [array.name for array in signature.arrays if array.in_place and array.name not in together]
    assert not alone, (
        f"{label}: {alone[0]} says in_place, but there is nothing of its shape that does as well"
    )
    for i, j in pairs:
        truth = _truth_in_place(attr, oracle, i, j)
        arrays = [array.copy() for array in truth.arrays]
        arrays[j] = arrays[i]
        function(*arrays)
        what = f"{label} with {signature.arrays[i].name} as {signature.arrays[j].name}"
        truth.assert_close(truth.outputs(arrays), what)
    return len(pairs)


@functools.lru_cache(maxsize=40)
def _truth_in_place(attr: KernelAttr, oracle: Oracle, i: int, j: int) -> Truth:
    """Of arrays of which two are one."""
    arrays = attr.signature().sample(3)
    if attr.signature().arrays[j].role == "inout":
        arrays[i] = arrays[j]
    arrays[j] = arrays[i]
    return Truth.by(oracle, attr, arrays)


def _may_be_one(one: Array, other: Array) -> bool:
    if one.role != "in" or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return other.role == "in" or (one.in_place and other.in_place)


def check_special_values(
    attr: KernelAttr,
    function: Function,
    oracle: Oracle = upcast_reference,
    *,
    label: str = "",
    alone: bool = True,
) -> int:
    """NaN, infinities, signed zeros, subnormals and overflow come out as they should.

    Each value goes into each input alone (unless `alone` is False), then all inputs are filled with them.
    NaN and infinities must be those of the true result and finite results close to it, wherever the row
    promises something; a zero must have its sign where no terms of a sum could have cancelled. Returns how
    many elements were asked for.
    """
    signature = attr.signature()
    asked = 0
    for truth in _truths_of_special_values(attr, oracle, alone):
        used = [array.copy() for array in truth.arrays]
        with np.errstate(all="ignore"):
            function(*used)
        results = zip(signature.outputs, truth.outputs(used), truth.expected, truth.distances, strict=True)
        for parameter, held, right, distance in results:
            got = parameter.numbers(held)
            off = accuracy.beyond(got, right, distance)
            if not attr.tolerance().terms and got.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    zero = (got == 0) & (parameter.numbers(parameter.stored(right)) == 0)
                off |= zero & (np.signbit(got) != np.signbit(right))
            asked += int((np.isfinite(distance) | np.isnan(right)).sum())
            if off.any():
                at = tuple(int(k) for k in np.argwhere(off)[0])
                found = f"{parameter.name}{list(at)} is {got[at]!r}"
                raise AssertionError(f"{label}: {found}, expected {right[at]!r} for special values")
    due = any(a.nbytes for a in signature.outputs)
    due &= any(a.nbytes and a.is_float for a in signature.arrays if a.role != "out")
    assert asked or not due, f"{label}: nothing was asked of special values"
    return asked


@functools.lru_cache(maxsize=1)
def _truths_of_special_values(attr: KernelAttr, oracle: Oracle, alone: bool) -> list[Truth]:
    return [Truth.by(oracle, attr, arrays, slack=4) for arrays in data.with_special_values(attr, alone)]


def check_bad_indices(attr: KernelAttr, function: Function, *, label: str = "") -> int:
    """Integers that the row's `check_data` refuses raise DataIndexError naming them, before any write.

    Returns how many calls were refused: none where there is no integer, or the row takes any.
    """
    signature = attr.signature()
    refused = 0
    if type(attr).check_data is KernelAttr.check_data:
        return refused
    for i, parameter in enumerate(signature.arrays):
        if parameter.role == "out" or not parameter.dtype.startswith("int") or not parameter.nbytes:
            continue
        low, high = int(parameter.domain[0]), int(parameter.domain[1])
        places = data.positions(int(np.prod(parameter.shape)))
        values = (low - 1, high, -(2**63), 2**63 - 1)
        for number, (place, wrong) in enumerate(itertools.product(places, values)):
            arrays = signature.sample(number)
            arrays[i].reshape(-1)[place] = wrong
            if _message(attr.check_data, [arrays]) is None:
                continue
            refused += 1
            before = [array.tobytes() for array in arrays]
            message = _message(function, arrays)
            assert message is not None, f"{label} accepted {wrong} in {parameter.name}"
            assert parameter.name in message, f"{label}: {message!r} does not name {parameter.name}"
            assert [array.tobytes() for array in arrays] == before, f"{label} wrote before it refused {wrong}"
        asks = type(attr).check_data is not KernelAttr.check_data
        assert refused or not asks, f"{label}: check_data of the row refuses nothing in {parameter.name}"
    return refused


def _message(function: Function, arguments: Sequence[Any]) -> str | None:
    """The message of the DataIndexError of a call, or None if it raised none."""
    try:
        function(*arguments)
    except DataIndexError as error:
        return str(error)
    return None
