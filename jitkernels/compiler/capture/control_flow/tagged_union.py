"""What is None, a string, or something else by choice: a number says which it is, and what it may be is kept beside.

``best = None`` before a loop that finds something, ``return None`` of a search, ``status = "done"``. What is done with
such a value is done with the number or array in it, after a check that it is this: else the plain function is called.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from jitkernels.frontends.flow.state import UNSET, number
from jitkernels.frontends.tables import SERVICES
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.ir import Node

OTHER = 0
"""The number that says that it is no constant."""


class Choice(NamedTuple):
    """Which it may be: `constants`, by the numbers behind `OTHER`; `other` is the form of all else, or None."""

    constants: tuple[Any, ...]
    other: Any

    def number_of(self, value: Any) -> int | None:
        """The number of a constant; None if it is none of these."""
        found = [i for i, one in enumerate(self.constants, 1) if type(one) is type(value) and one == value]
        return found[0] if found else None


class Undecided:
    """What only the running code knows the truth of, and is no number."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise UnknownError("the text of what only the running code knows")

    @property
    def is_decided(self) -> bool:
        """Whether the trace knows it, after all."""
        return False

    def truth(self, of: Callable[[Any], Node]) -> Node:
        """Whether it is true; `of` says it of what it is made of."""
        raise NotImplementedError


class Chosen(Undecided):
    """One of them by choice. `tag` is the number, `other` what it is where it is no constant."""

    __slots__ = ("choice", "other", "tag", "tracer")
    __array_priority__ = 3000.0

    def __init__(self, tracer: Tracer, choice: Choice, tag: Traced, other: Any) -> None:
        self.tracer, self.choice, self.tag, self.other = tracer, choice, tag, other

    def value(self) -> Any:
        """What it is if it is no constant. The call is refused where it is one."""
        if self.choice.other is None:
            raise UnknownError(f"one of {', '.join(map(repr, self.choice.constants))}, by choice")
        zero = construct.constant(OTHER, "int64")
        self.tracer.checks.append(elementwise("not_equal", self.tag.node, zero))
        return self.other

    def is_one(self, value: Any) -> Any:
        """Whether it is a constant."""
        found = self.choice.number_of(value)
        if found is None:
            return False
        return number(self.tracer, self._has(found), bool)

    def _has(self, tag: int) -> Node:
        return elementwise("equal", self.tag.node, construct.constant(tag, "int64"))

    def truth(self, of: Callable[[Any], Node]) -> Node:
        """Whether it is true; `of` says it of what is no constant."""
        found = [self._has(tag) for tag, one in enumerate(self.choice.constants, 1) if one]
        if self.choice.other is not None and self.other is not UNSET:
            found.append(elementwise("logical_and", self._has(OTHER), of(self.other)))
        return reduce(lambda a, b: elementwise("logical_or", a, b), found, construct.constant(False, "bool"))

    # What is done with what it is

    def __eq__(self, other: object) -> Any:
        if self.choice.other is None or other is None or isinstance(other, str):
            return self.is_one(other)
        return self.value() == other

    def __ne__(self, other: object) -> Any:
        if self.choice.other is None or other is None or isinstance(other, str):
            found = self.is_one(other)
            if type(found) is not Traced:
                return not found
            return number(self.tracer, elementwise("logical_not", found.node), bool)
        return self.value() != other

    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        return getattr(ufunc, way)(*map(plain, inputs), **keywords)

    def __array_function__(self, function: Any, _: Any, arguments: Any, keywords: Any) -> Any:
        return SERVICES["function"](self.tracer, function, *plain((arguments, keywords)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value())

    def __bool__(self) -> bool:
        raise UnknownError("the truth of what is one of several things by choice")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value(), name)


def _operators() -> None:
    names = (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
    )

    def forward(function: Any) -> Any:
        return lambda self, other: function(self.value(), plain(other))

    def backward(function: Any) -> Any:
        return lambda self, other: function(other, self.value())

    def single(function: Any) -> Any:
        return lambda self, *others: function(self.value(), *others)

    for name in names:
        bare = name.rstrip("_")
        setattr(Chosen, f"__{bare}__", forward(getattr(operator, name)))
        setattr(Chosen, f"__r{bare}__", backward(getattr(operator, name)))
    for name in ("lt", "le", "gt", "ge"):
        setattr(Chosen, f"__{name}__", forward(getattr(operator, name)))
    for name in ("neg", "pos", "abs", "invert", "index", "getitem", "setitem", "contains"):
        setattr(Chosen, f"__{name}__", single(getattr(operator, name)))
    for name, function in (
        ("len", len),
        ("int", int),
        ("float", float),
        ("round", round),
        ("format", format),
    ):
        setattr(Chosen, f"__{name}__", single(function))


_operators()


def plain(value: Any) -> Any:
    """A value, with what is no constant in place of what may be one by choice."""
    if type(value) is Chosen:
        return value.value()
    if type(value) in (tuple, list):
        return type(value)(plain(one) for one in value) if any(map(_has_chosen, value)) else value
    if type(value) is dict:
        return {name: plain(one) for name, one in value.items()}
    return value


def _has_chosen(value: Any) -> bool:
    return type(value) is Chosen or (type(value) in (tuple, list, dict) and any(map(_has_chosen, value)))


def taking_plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given what is no constant."""

    def call(*given: Any, **named: Any) -> Any:
        if any(map(_has_chosen, given)):
            given = plain(given)
        return function(*given, **named)

    return call


def recoded(chosen: Chosen, choice: Choice) -> Any:
    """The number of a value among more constants."""
    tags: Sequence[int | None] = [OTHER, *(choice.number_of(one) for one in chosen.choice.constants)]
    found: Node = construct.constant(tags[0], "int64")
    for before, after in enumerate(tags):
        assert after is not None, "all are there"
        if after != OTHER:
            found = Node(
                "where", (chosen._has(before), construct.constant(after, "int64"), found), "int64", ()
            )
    return chosen.tag if list(tags) == list(range(len(tags))) else number(chosen.tracer, found, int)
