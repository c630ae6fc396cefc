"""`frozen_dataclass` makes what ``dataclass(frozen=True)`` makes, in less time."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, ClassVar

import pytest

from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Record:
    first: int
    second: str = "two"
    third: tuple[int, ...] = field(default_factory=tuple)
    apart: Any = field(default=None, compare=False, repr=False)
    shared: ClassVar[int] = 3


@dataclass(frozen=True)
class Class:
    first: int
    second: str = "two"
    third: tuple[int, ...] = field(default_factory=tuple)
    apart: Any = field(default=None, compare=False, repr=False)
    shared: ClassVar[int] = 3


@frozen_dataclass
class Alone:
    value: float


@frozen_dataclass
class Checked:
    value: float

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")

    def __hash__(self) -> int:
        return 7


GIVEN: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((1,), {}), ((1, "two"), {}), ((1,), {"third": (2,)}), ((1,), {"apart": 5}), ((), {"first": 2, "second": "x"}),
)  # fmt: skip


def test_values_are_the_same() -> None:
    for args, named in GIVEN:
        one, other = Record(*args, **named), Class(*args, **named)
        assert vars(one) == vars(other)
        assert repr(one) == repr(other).replace("Class(", "Record(")
        assert [f.name for f in dataclasses.fields(one)] == [f.name for f in dataclasses.fields(other)]
        assert vars(dataclasses.replace(one, second="y")) == vars(dataclasses.replace(other, second="y"))
        assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one


def test_equality_and_hashes_are_the_same() -> None:
    ones, others = ([kind(*args, **named) for args, named in GIVEN] for kind in (Record, Class))
    assert [[a == b for a in ones] for b in ones] == [[a == b for a in others] for b in others]
    assert len(set(ones)) == len(set(others)) < len(ones)
    assert ones[0] != others[0]
    assert Alone(1.0) == Alone(1.0) != Alone(2.0)
    assert hash(Alone(1.0)) == hash(Alone(1.0))


def test_records_are_frozen() -> None:
    one = Record(1)
    with pytest.raises(FrozenInstanceError, match="a Record is frozen: cannot assign or delete first"):
        one.first = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.first
    with pytest.raises(TypeError, match="first"):
        Record()  # type: ignore[call-arg]
    match Record(4, "four"):
        case Record(4, second):
            assert second == "four"
        case _:
            raise AssertionError("nothing matched")


def test_methods_of_a_record_class_are_kept() -> None:
    assert hash(Checked(1.0)) == 7
    with pytest.raises(ValueError, match="negative"):
        Checked(-1.0)
