"""Shape polymorphism: an object built for one attr is right for other extents, unless it declares otherwise."""

import ctypes
import dataclasses
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import cases
import numpy as np
import pytest

from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr, power_of_two
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.schema_queries import specialised_extents_of
from jitkernels.attrs.schema.signature import AnyArray, Array
from jitkernels.codegen.source_protocol import Source
from jitkernels.core import bfloat16
from jitkernels.dispatch.kernel import scalar_words
from jitkernels.runtime.loading import loader
from jitkernels.selection.size_classes import nbytes
from jitkernels.tools import testing

MOST = 1 << 14
"""Elements of a call that the test makes; operations are at most 20 times as many."""
PLACES: tuple[tuple[Literal["start", "end"], int], ...] = (("end", 0), ("start", 0), ("start", 1))
"""Where arrays lie: at either end of their pages, and beginning within a line of the cache."""
OBJECTS = 3
"""How many of an implementation are tried, which are of several attrs and variants."""
ATTRS = 8
"""Cases of an implementation from which these are chosen."""
FEW = 40
"""What extents of large attrs are made, to call what was made for those with others."""


def extents(attr: KernelAttr) -> list[str]:
    """The fields of an attr that are sizes."""
    return [f.name for f in dataclasses.fields(attr) if f.type in (int, "int")]  # type: ignore[arg-type]


def other_sizes(attr: KernelAttr) -> Iterator[KernelAttr]:
    """Attrs of the same options: every size at both ends of its class and beyond them, one by one and all at once."""
    fields = attr.fields()
    alone = specialised_extents_of(type(attr))  # where one is 1 there is code for that
    ends = {name: power_of_two(fields[name]) for name in extents(attr) if name not in alone or fields[name] != 1}
    changes: list[dict[str, int]] = []
    for each, change in (  # first of the class, then beyond it
        (False, lambda end: end // 2 + 1), (False, lambda end: max(end - 1, 1)), (True, lambda end: end),
        (False, lambda end: 1), (False, lambda end: 5 * end + 3), (True, lambda end: end + 301),
        (True, lambda end: end + 9000), (True, lambda end: 0),
    ):  # fmt: skip
        every = {name: change(end) for name, end in ends.items()}
        changes += [every, *({name: value} for name, value in every.items() if each)]
    found: dict[KernelAttr, None] = {}
    for changed in changes:
        other = testing.changed(attr, changed, most=8 * MOST)
        if other is not None and other != attr and other.operations() < 20 * MOST:
            found[other] = None
    yield from found


def made_for(row: cases.Row, name: str, most: int) -> Iterator[tuple[KernelAttr, KernelAttr]]:
    """Attrs to make objects for, each with one whose `other_sizes` they are called with; `most` of the cases.

    Beside the cases themselves the largest of the sweep of either dtype: some variants are offered for such alone.
    """
    for attr in cases.evenly(cases.in_scope(row, name), most):
        yield attr, attr
    for dtype in dict.fromkeys(attr.fields()["dtype"] for attr in cases.in_scope(row, name)):
        whole = [case.attr for case in row.sweep() if case.attr.fields()["dtype"] == dtype]
        mine = cases.only_in_scope(row, name, sorted(whole, key=nbytes)[-1:])
        for attr in mine:
            small = testing.changed(attr, {key: min(attr.fields()[key], FEW) for key in extents(attr)})
            if small is not None and implementation(row, name).reason_against(small) is None:
                yield attr, small


def call(address: int, attr: KernelAttr, arrays: list[Any]) -> int:
    """Call a C entry with the words of an attr."""
    words = [array.ctypes.data for array in arrays] + scalar_words(attr.signature())
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))(address)(*words))


def objects(row: cases.Row, name: str, most: int = sys.maxsize) -> dict[str, tuple[KernelAttr, KernelAttr, Source]]:
    """The sources that serve any size by their text, each with the attrs of `made_for` that it was met with first."""
    found: dict[str, tuple[KernelAttr, KernelAttr, Source]] = {}
    for attr, near in made_for(row, name, most):
        cases.usable(attr, name)
        for variant in cases.variants_of(attr, name):
            source = implementation(row, name).function(attr, **variant)
            if not getattr(source, "exact", False):
                found.setdefault(source.text, (attr, near, source))
    return found


def is_near(got: AnyArray, true: AnyArray, parameter: Array) -> AnyArray:
    """Equal, both NaN, or less than a thousand roundings of its dtype apart."""
    bound = 1000 * bfloat16.limits(parameter.dtype).eps if parameter.is_float else 0
    with np.errstate(all="ignore"):
        near = np.abs(got - true) <= bound * (1 + np.abs(true))
    return np.asarray(near | (got == true) | (np.isnan(got) & np.isnan(true)))


@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_some_objects_serve_other_extents(row: Any, name: str) -> None:
    every = [*objects(row, name, ATTRS).values()]
    check(name, every[:: -(-len(every) // OBJECTS) | 1])  # odd, or all might be of one variant


@pytest.mark.full
@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_all_objects_serve_other_extents(row: Any, name: str) -> None:
    check(name, [*objects(row, name).values()])


def check(name: str, made: Sequence[tuple[KernelAttr, KernelAttr, Source]]) -> None:
    served = 0
    for number, (attr, near, source) in enumerate(made):
        address, label = loader.address_of(source), f"{name} by {source.name}, made for {attr}"
        # Every third one, beginning elsewhere each time: together they meet all.
        for other in itertools.islice(other_sizes(near), number % 3, None, 3):
            served += 1
            arrays = other.signature().sample(served)
            right = testing.upcast_reference(other, [array.copy() for array in arrays])
            for side, apart in PLACES:
                guarded = [testing.Guarded(array, side, apart=apart) for array in arrays]
                assert call(address, other, [guard.array for guard in guarded]) == 0
                results = zip(guarded, other.signature().arrays, strict=True)
                outputs = [(guard, a) for guard, a in results if a.output]
                for place, ((guard, parameter), true) in enumerate(zip(outputs, right, strict=True)):
                    assert guard.intact(), f"{label}, writes beyond {other}"
                    got = parameter.numbers(guard.array).astype(true.dtype)
                    close = is_near(got, true, parameter)
                    if not close.all():  # nor need it be where the row promises less
                        most = error_bounds.allowed(other, arrays, right)[place]
                        close |= np.abs(got - true) <= most
                    assert close.all(), f"{label}, is wrong for {other}"
    assert served, f"{name} has no object that serves several sizes"
