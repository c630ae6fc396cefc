"""Size classes over all rows: they are few, keep every flag, and empty arrays are never measured."""

import contextlib
import dataclasses
import itertools
import random
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import Row, every_form, every_row

import jitkernels as jk
from jitkernels.attrs.schema.fields import Field
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import AttrError, DataIndexError
from jitkernels.selection import records
from jitkernels.selection.size_classes import has_elements, measured_member
from jitkernels.tuning.tune import candidates


def random_attrs(row: Row, count: int, *, kept: Collection[str] = ()) -> list[jk.KernelAttr]:
    """Attrs with extents of up to 1000, any of the values of flags, and floats that are 0, usual and others.

    Fields that are `kept` are in all of them as the first drawn has them.
    """
    generator = random.Random(1)
    seen = [case.attr.fields() for case in row.sweep()]
    in_sweep = {name: list(dict.fromkeys(fields[name] for fields in seen)) for name in seen[0]}

    def value(name: str, field: Field) -> Any:
        if field.kind == "int":
            return generator.randint(1, 1000)
        if field.kind == "float":
            return generator.choice([0.0, in_sweep[name][0], 0.25])
        if field.kind == "whole":
            samples = row.__dataclass_fields__[name].metadata["samples"]  # type: ignore[attr-defined]
            return generator.choice([*samples, in_sweep[name][0]])
        return generator.choice(list(field.values) or in_sweep[name])

    def drawn() -> Iterator[jk.KernelAttr]:
        known = row.known_fields().items()
        same: dict[str, Any] = {}
        for _ in range(100 * count):
            with contextlib.suppress(AttrError):  # numbers that do not fit one another
                drawn = row(**{name: value(name, field) for name, field in known} | same)
                same.update({name: getattr(drawn, name) for name in kept})
                yield drawn

    return list(itertools.islice(drawn(), count))


def flags(attr: jk.KernelAttr) -> tuple[Any, ...]:
    """What decides a class beside the extents: every other field, and whether floats are 0."""
    known = attr.known_fields()
    kept = [value for name, value in attr.fields().items() if known[name].kind not in ("int", "whole", "float")]
    return (*kept, *(bool(attr.fields()[name]) for name in known if known[name].kind == "float"))


@pytest.mark.parametrize("row", every_form())
def test_classes_are_few(row: Row) -> None:
    """A thousand random attrs that differ in four extents at most have some hundreds of classes."""
    varied = [name for name, field in row.known_fields().items() if field.is_integer][:4]
    attrs = random_attrs(row, 1_000, kept=row.known_fields().keys() - {*varied})
    assert len({*attrs}) > min(500, 900 ** len(varied))
    assert len({attr.size_class() for attr in attrs}) <= min(500, 11 ** len(varied))


@pytest.mark.parametrize("row", every_row())
def test_classes_keep_flags(row: Row) -> None:
    for attr in random_attrs(row, 200):
        of_class = attr.size_class()
        assert flags(of_class) == flags(attr)
        assert of_class.size_class() == of_class
        assert type(of_class) is type(attr)


OF_MULTIPLES = {"CONV2D_INT8_PACKED"}
"""Rows that demand multiples of four: no member of a class has remainders, so that the class itself is measured."""


@pytest.mark.parametrize("row", every_row())
def test_measured_members_belong_to_their_class(row: Row) -> None:
    """All candidates of the class compute it, and its extents are no powers of two."""
    moved = 0
    for attr in random_attrs(row, 200):
        member = measured_member(attr)
        assert member.size_class() == attr.size_class()
        assert measured_member(member) == member
        moved += member != attr.size_class()
    assert moved > 100 or row.kernel_type.name in OF_MULTIPLES


def empty_attrs(row: Row) -> Iterator[jk.KernelAttr]:
    """Attrs with any of the extents 0 that the row allows; of many extents, one or two or all."""
    base = next(iter(row.sweep())).attr
    extents = [name for name, field in row.known_fields().items() if field.kind == "int"]
    for chosen in itertools.product((False, True), repeat=len(extents)):
        if 2 < sum(chosen) < len(chosen) > 5:  # hundreds, of which few tell anything
            continue
        zero = {name: 0 if is_zero else 5 for name, is_zero in zip(extents, chosen, strict=True)}
        try:
            attr = dataclasses.replace(base, **zero)  # type: ignore[type-var]  # subclasses are dataclasses
        except AttrError:
            continue
        if not has_elements(attr):
            yield attr


def test_rows_allow_empty_arrays() -> None:
    assert sum(1 for row in all_schemas() for _ in empty_attrs(row)) >= len(all_schemas())


@pytest.mark.parametrize("mode", ["auto", "replay", "off"])
@pytest.mark.parametrize("row", every_form())
def test_empty_shapes_work_and_are_not_measured(
    row: Row, mode: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JITKERNELS_TUNE", mode)
    for attr in empty_attrs(row):
        arrays, expected = attr.signature().sample(), attr.signature().sample()
        kernel = KernelFuncs.cache().at(attr)
        try:
            jk.get_refer(attr)(*expected)
        except DataIndexError:  # ids for a table of no rows: there are no valid ones
            with pytest.raises(DataIndexError):
                kernel(*arrays)
            continue
        kernel(*arrays)
        for got, right in zip(arrays, expected, strict=True):
            if got.dtype.kind == "f":  # where other extents have elements, sums may begin elsewhere
                np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)
            else:
                assert np.array_equal(got, right)
        if mode != "off":
            assert jk.tune(attr).rule == "static"
    assert not list(records.files(fresh))


EMPTY_CALLS: dict[str, list[tuple[Any, ...]]] = {
    "vmul": [((5, 0), (5, 0)), ((0,), (0,)), ((0, 3), (3,))],
    "vexp": [((5, 0),), ((0,),), ((0, 5),)],
    "vsigmoid": [((5, 0),), ((0,),)],
    "softmax": [((0, 5),), ((0, 3, 5),)],
    "layer_norm": [((0, 5),), ((0, 3, 5),)],
    "hmax": [((0, 5),), ((0, 3, 5),)],
    "hsum": [((0, 5),), ((3, 0),)],
    "matmul": [((5, 0), (0, 3)), ((0, 5), (5, 3))],
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
    """Labels identify candidates in records, and have to be unique."""
    for row in all_schemas():
        for case in row.sweep():
            labels = [candidate.label for candidate in candidates(case.attr)]
            assert len(set(labels)) == len(labels)
            assert labels[-1] == "refer"
