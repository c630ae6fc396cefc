"""Checks of one callable: values, kinds of data, aliased arguments, special values, indices. Each counts its checks.

Variants of a kernel are checked in sequence, so that the most recent expected values are cached.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import Array
from jitkernels.errors import DataIndexError
from jitkernels.tools.testing import data
from jitkernels.tools.testing.expected import Oracle, Truth, upcast_reference
from jitkernels.tools.testing.guard_pages import Guarded

Function = Callable[..., Any]


def check_values(
    attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = "", seed: int = 0
) -> None:
    """Check that outputs are right and fully written, inputs unchanged, and guard pages around the arrays intact."""
    truth = _expected_of_sample(attr, oracle, seed)
    for side in ("start", "end"):
        guarded = [Guarded(array, side) for array in truth.arrays]
        returned = function(*[guard.array for guard in guarded])
        assert returned is None, f"{label} returned {returned!r} instead of None"
        for parameter, guard in zip(truth.signature.arrays, guarded, strict=True):
            assert guard.intact(), f"{label} wrote outside {parameter.name}"
        truth.assert_right([guard.array for guard in guarded], label)


@functools.lru_cache(maxsize=2)
def _expected_of_sample(attr: KernelAttr, oracle: Oracle, seed: int) -> Truth:
    return Truth.by(oracle, attr, attr.signature().sample(seed))


def check_data(
    attr: KernelAttr,
    functions: Mapping[str, Function],
    oracle: Oracle = upcast_reference,
    *,
    kinds: Sequence[str] | None = None,
) -> None:
    """Check outputs of functions, by label, for every kind of data, or for the named kinds."""
    for number, name in enumerate(data.kinds(attr)):
        if kinds is not None and name not in kinds:
            continue
        truth = _expected_of_kind(attr, oracle, name, number)
        for label, function in functions.items():
            used = [array.copy() for array in truth.arrays]
            with np.errstate(all="ignore"):
                function(*used)
            truth.assert_right(used, f"{label} with {name}")


@functools.lru_cache(maxsize=1)
def _expected_of_kind(attr: KernelAttr, oracle: Oracle, name: str, seed: int) -> Truth:
    return Truth.by(oracle, attr, data.sample(attr, data.kinds(attr)[name], seed))


def check_aliased_arguments(
    attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = ""
) -> int:
    """Check calls with aliased arguments: an output that may alias an input, and one array as several inputs.

    Returns the number of aliased pairs of arguments.
    """
    signature = attr.signature()
    pairs = [
        (i, j)
        for i, j in itertools.permutations(range(len(signature.arrays)), 2)
        if _may_alias(signature.arrays[i], signature.arrays[j]) and (i < j or signature.arrays[j].role != "in")
    ]
    together = {signature.arrays[index].name for pair in pairs for index in pair}
    alone = [array.name for array in signature.arrays if array.in_place and array.name not in together]
    assert not alone, f"{label}: {alone[0]} declares in_place, but no other array of its shape does"
    for i, j in pairs:
        truth = _expected_with_alias(attr, oracle, i, j)
        arrays = [array.copy() for array in truth.arrays]
        arrays[j] = arrays[i]
        function(*arrays)
        what = f"{label} with {signature.arrays[i].name} as {signature.arrays[j].name}"
        truth.assert_close(truth.outputs(arrays), what)
    return len(pairs)


@functools.lru_cache(maxsize=40)
def _expected_with_alias(attr: KernelAttr, oracle: Oracle, i: int, j: int) -> Truth:
    """Return the expected outputs for arrays of which two are the same."""
    arrays = attr.signature().sample(3)
    if attr.signature().arrays[j].role == "inout":
        arrays[i] = arrays[j]
    arrays[j] = arrays[i]
    return Truth.by(oracle, attr, arrays)


def _may_alias(first: Array, second: Array) -> bool:
    if first.role != "in" or (first.shape, first.dtype) != (second.shape, second.dtype):
        return False
    return second.role == "in" or (first.in_place and second.in_place)


def check_special_values(
    attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = "", alone: bool = True
) -> int:
    """Check the propagation of NaN, infinities, signed zeros, subnormals and overflow.

    Each value goes into each input alone (unless `alone` is False), then all inputs are filled with them.
    NaN and infinities must be those of the true result and finite results close to it, wherever the schema
    promises something; a zero must have its sign where no terms of a sum could have cancelled. Returns the
    number of compared elements.
    """
    signature = attr.signature()
    compared = 0
    for truth in _expected_of_special_values(attr, oracle, alone):
        used = [array.copy() for array in truth.arrays]
        with np.errstate(all="ignore"):
            function(*used)
        results = zip(signature.outputs, truth.outputs(used), truth.expected, truth.distances, strict=True)
        for parameter, held, right, distance in results:
            got = parameter.numbers(held)
            off = error_bounds.beyond(got, right, distance)
            if not attr.tolerance().terms and got.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    zero = (got == 0) & (parameter.numbers(parameter.stored(right)) == 0)
                off |= zero & (np.signbit(got) != np.signbit(right))
            compared += int((np.isfinite(distance) | np.isnan(right)).sum())
            if off.any():
                at = tuple(int(k) for k in np.argwhere(off)[0])
                mismatch = f"{parameter.name}{list(at)} is {got[at]!r}"
                raise AssertionError(f"{label}: {mismatch}, expected {right[at]!r} for special values")
    due = any(a.nbytes for a in signature.outputs)
    due &= any(a.nbytes and a.is_float for a in signature.arrays if a.role != "out")
    assert compared or not due, f"{label}: no special values were compared"
    return compared


@functools.lru_cache(maxsize=1)
def _expected_of_special_values(attr: KernelAttr, oracle: Oracle, alone: bool) -> list[Truth]:
    return [Truth.by(oracle, attr, arrays, slack=4) for arrays in data.with_special_values(attr, alone)]


def check_bad_indices(attr: KernelAttr, function: Function, *, label: str = "") -> int:
    """Check that integers which the schema's `check_data` rejects raise a DataIndexError naming them, before any write.

    Returns the number of rejected calls: 0 if the kernel has no integers, or the schema accepts any.
    """
    signature = attr.signature()
    rejected = 0
    if type(attr).check_data is KernelAttr.check_data:
        return rejected
    for i, parameter in enumerate(signature.arrays):
        if parameter.role == "out" or not parameter.dtype.startswith("int") or not parameter.nbytes:
            continue
        low, high = int(parameter.domain[0]), int(parameter.domain[1])
        indices = data.positions(int(np.prod(parameter.shape)))
        values = (low - 1, high, -(2**63), 2**63 - 1)
        for number, (index, wrong) in enumerate(itertools.product(indices, values)):
            arrays = signature.sample(number)
            arrays[i].reshape(-1)[index] = wrong
            if _message(attr.check_data, [arrays]) is None:
                continue
            rejected += 1
            before = [array.tobytes() for array in arrays]
            message = _message(function, arrays)
            assert message is not None, f"{label} accepted {wrong} in {parameter.name}"
            assert parameter.name in message, f"{label}: {message!r} does not name {parameter.name}"
            assert [array.tobytes() for array in arrays] == before, f"{label} wrote before it rejected {wrong}"
        asks = type(attr).check_data is not KernelAttr.check_data
        assert rejected or not asks, f"{label}: check_data of the schema rejects nothing in {parameter.name}"
    return rejected


def _message(function: Function, arguments: Sequence[Any]) -> str | None:
    """Return the message of the DataIndexError of a call, or None if it raised none."""
    try:
        function(*arguments)
    except DataIndexError as error:
        return str(error)
    return None
