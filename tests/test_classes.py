"""Tuning classes over all rows: they are few, keep every flag, and what has no elements is never measured."""

import dataclasses
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import Row, every_row

import jitkernels as jk
from jitkernels.errors import AttrError
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.measuring import candidates
from jitkernels.registry import all_rows
from jitkernels.tuning import store
from jitkernels.tuning.classes import has_elements, measured_member


def random_attrs(row: Row, count: int) -> list[jk.KernelAttr]:
    """Attrs with extents of up to 1000 and every field at values of the row's sweep otherwise."""
    generator = random.Random(1)
    seen = [case.attr.fields() for case in row.sweep()]
    values = {name: list({fields[name] for fields in seen}) for name in seen[0]}
    found: list[jk.KernelAttr] = []
    while len(found) < count:
        fields = {
            name: generator.randint(1, 1000) if type(known[0]) is int else generator.choice(known)
            for name, known in values.items()
        }
        found.append(row(**fields))
    return found


@pytest.mark.parametrize("row", every_row())
def test_classes_are_few_and_keep_flags(row: Row) -> None:
    """10,000 random attrs are some hundreds of classes, for each way to set the flags; ints alone are rounded."""
    attrs = random_attrs(row, 10_000)
    classes = {attr.tuning_class() for attr in attrs}
    flags = {tuple(v for v in attr.fields().values() if isinstance(v, bool | str)) for attr in attrs}
    extents = sum(type(value) is int for value in attrs[0].fields().values())
    assert len(classes) <= 12**extents * len(flags)
    assert len(classes) <= 5000
    for attr in attrs[:200]:
        of_class = attr.tuning_class()
        assert of_class.tuning_class() == of_class
        assert type(of_class) is type(attr)
        for name, value in attr.fields().items():
            if isinstance(value, bool | str):
                assert of_class.fields()[name] == value, name
            elif type(value) is float:
                assert (of_class.fields()[name] == 0) == (value == 0), name


@pytest.mark.parametrize("row", every_row())
def test_measured_member_is_one_of_the_class(row: Row) -> None:
    """It is computed by all that compute the class, and it is not the power of two itself."""
    moved = 0
    for attr in random_attrs(row, 200):
        member = measured_member(attr)
        assert member.tuning_class() == attr.tuning_class()
        assert measured_member(member) == member
        moved += member != attr.tuning_class()
    assert moved > 100


def empty_attrs(row: Row) -> Iterator[jk.KernelAttr]:
    """Attrs with any of the extents 0 that the row allows."""
    base = next(iter(row.sweep())).attr
    extents = [name for name, value in base.fields().items() if type(value) is int]
    for chosen in itertools.product((False, True), repeat=len(extents)):
        zero = {name: 0 if is_zero else 5 for name, is_zero in zip(extents, chosen, strict=True)}
        try:
            attr = dataclasses.replace(base, **zero)  # type: ignore[type-var]  # subclasses are dataclasses
        except AttrError:
            continue
        if not has_elements(attr):
            yield attr


def test_rows_allow_empty_arrays() -> None:
    assert sum(1 for row in all_rows() for _ in empty_attrs(row)) >= len(all_rows())


@pytest.mark.parametrize("mode", ["auto", "replay", "off"])
@pytest.mark.parametrize("row", every_row())
def test_empty_shapes_work_and_are_not_measured(
    row: Row, mode: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", mode)
    for attr in empty_attrs(row):
        arrays, expected = attr.signature().sample(), attr.signature().sample()
        KernelFuncs.cache().at(attr)(*arrays)
        jk.get_refer(attr)(*expected)
        for got, right in zip(arrays, expected, strict=True):
            assert np.array_equal(got, right, equal_nan=got.dtype.kind == "f")
        if mode != "off":
            assert jk.tune(attr).rule == "static"
    assert not list(store.files(fresh))


EMPTY_CALLS: dict[str, list[tuple[Any, ...]]] = {
    "vmul": [((5, 0), (5, 0)), ((0,), (0,)), ((0, 3), (3,))],
    "vexp": [((5, 0),), ((0,),), ((0, 5),)],
    "vsigmoid": [((5, 0),), ((0,),)],
    "softmax": [((0, 5),), ((0, 3, 5),)],
    "layer_norm": [((0, 5),), ((0, 3, 5),)],
    "matmul": [((5, 0), (0, 3)), ((0, 5), (5, 3)), ((5, 3), (3, 0))],
    "seq_pool": [((5, 0),)],
}


@pytest.mark.parametrize("mode", ["auto", "replay", "off"])
@pytest.mark.parametrize("name", sorted(EMPTY_CALLS))
def test_everyday_functions_take_empty_arrays(
    name: str, mode: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", mode)
    for shapes in EMPTY_CALLS[name]:
        result = getattr(jk, name)(*(np.ones(shape, np.float32) for shape in shapes))
        assert result.size == 0 or not result.any()


def test_every_candidate_is_listed_once() -> None:
    """A label is the name of a candidate in a record, so two of one label would be taken for one."""
    for row in all_rows():
        for case in row.sweep():
            labels = [candidate.label for candidate in candidates(case.attr)]
            assert len(set(labels)) == len(labels)
            assert labels[-1] == "refer"
