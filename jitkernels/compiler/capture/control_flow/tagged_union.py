"""Tagged unions: a variable that holds None, a string, or something else depending on runtime values.

``best = None`` before a search loop, ``return None``, ``status = "done"``. An integer tag says which it is; the number
or array is stored beside it. Operations act on the stored value under a guard that the tag selects it (else: bailout).
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, as_number
from jitkernels.compiler.capture.numpy_namespace_proxy import class_of
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, pytree
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node

OTHER = 0
"""The tag of a value that is no constant."""


class Alternatives(NamedTuple):
    """The alternatives: `constants` have the tags after `OTHER`; `other` is the form of everything else, or None."""

    constants: tuple[Any, ...]
    other: Any

    def tag_of(self, value: Any) -> int | None:
        """The tag of a constant; None if it is no alternative."""
        tags = (
            i for i, constant in enumerate(self.constants, 1) if type(constant) is type(value) and constant == value
        )
        return next(tags, None)


class Undecided:
    """A value, not a number, whose truth only the compiled code knows."""

    __slots__ = ()

    def __repr__(self) -> str:
        raise UnsupportedError("the text of a value that only the compiled code knows")

    @property
    def is_decided(self) -> bool:
        """Whether the trace knows its truth nevertheless."""
        return False

    def truth(self, of: Callable[[Any], Node]) -> Node:
        """Its truth as a node; `of` computes that of a component."""
        raise NotImplementedError


class TaggedUnion(Undecided):
    """A tagged union. `tag` selects the alternative; `other` is the value where that is no constant."""

    __slots__ = ("alternatives", "other", "tag", "tracer")
    __array_priority__ = 3000.0

    def __init__(self, tracer: Tracer, alternatives: Alternatives, tag: Traced, other: Any) -> None:
        self.tracer, self.alternatives, self.tag, self.other = tracer, alternatives, tag, other

    def value(self) -> Any:
        """The value that is no constant, under a guard: calls in which it is a constant bail out."""
        if self.alternatives.other is None:
            constants = ", ".join(map(repr, self.alternatives.constants))
            raise UnsupportedError(f"one of {constants}, depending on runtime values")
        self.tracer.checks.append(elementwise("not_equal", self.tag.node, builder.constant(OTHER, "int64")))
        return self.other

    @property
    def stands_for(self) -> type:
        """The type that the function sees, under the same guard."""
        return class_of(self.value())

    def is_constant(self, value: Any) -> Any:
        tag = self.alternatives.tag_of(value)
        return False if tag is None else as_number(self.tracer, self._has(tag), bool)

    def _has(self, tag: int) -> Node:
        return elementwise("equal", self.tag.node, builder.constant(tag, "int64"))

    def truth(self, of: Callable[[Any], Node]) -> Node:
        """Its truth as a node; `of` computes that of the value that is no constant."""
        true_cases = [self._has(tag) for tag, constant in enumerate(self.alternatives.constants, 1) if constant]
        if self.alternatives.other is not None and self.other is not UNSET:
            true_cases.append(elementwise("logical_and", self._has(OTHER), of(self.other)))
        return reduce(lambda a, b: elementwise("logical_or", a, b), true_cases, builder.constant(False, "bool"))

    def tag_among(self, alternatives: Alternatives) -> Any:
        """The tag among more constants."""
        tags: Sequence[int | None] = [OTHER, *map(alternatives.tag_of, self.alternatives.constants)]
        selected: Node = builder.constant(tags[0], "int64")
        for before, after in enumerate(tags):
            assert after is not None, "every constant has a tag"
            if after != OTHER:
                selected = Node("where", (self._has(before), builder.constant(after, "int64"), selected), "int64", ())
        return self.tag if list(tags) == list(range(len(tags))) else as_number(self.tracer, selected, int)

    # Operators on the value

    def _compares_constants(self, other: object) -> bool:
        return self.alternatives.other is None or other is None or isinstance(other, str)

    def __eq__(self, other: object) -> Any:
        return self.is_constant(other) if self._compares_constants(other) else self.value() == other

    def __ne__(self, other: object) -> Any:
        if not self._compares_constants(other):
            return self.value() != other
        result = self.is_constant(other)
        if type(result) is not Traced:
            return not result
        return as_number(self.tracer, elementwise("logical_not", result.node), bool)

    __hash__ = None  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return getattr(ufunc, method)(*map(unwrap, inputs), **keywords)

    def __array_function__(self, function: Any, _: Any, arguments: Any, keywords: Any) -> Any:
        return SERVICES["function"](self.tracer, function, *unwrap((arguments, keywords)))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value())

    def __bool__(self) -> bool:
        raise UnsupportedError("the truth of a value that is one of several alternatives")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value(), name)


def _add_operators() -> None:
    """Give `TaggedUnion` the operators of its value."""

    def forward(function: Any) -> Any:
        return lambda self, *others: function(self.value(), *map(unwrap, others))

    def reflected(function: Any) -> Any:
        return lambda self, other: function(other, self.value())

    def with_keys(function: Any) -> Any:
        return lambda self, *others: function(self.value(), *others)

    arithmetic = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift"
    for name in arithmetic.split():
        bare = name.rstrip("_")
        setattr(TaggedUnion, f"__{bare}__", forward(getattr(operator, name)))
        setattr(TaggedUnion, f"__r{bare}__", reflected(getattr(operator, name)))
    for name in ("lt", "le", "gt", "ge"):
        setattr(TaggedUnion, f"__{name}__", forward(getattr(operator, name)))
    for name in ("neg", "pos", "abs", "invert", "index", "getitem", "setitem", "contains"):
        setattr(TaggedUnion, f"__{name}__", with_keys(getattr(operator, name)))
    for function in (len, int, float, round, format):
        setattr(TaggedUnion, f"__{function.__name__}__", with_keys(function))


_add_operators()


def unwrap(value: Any) -> Any:
    """A value with tagged unions replaced by their values that are no constants."""
    return pytree.tree_map(lambda leaf: leaf.value() if type(leaf) is TaggedUnion else leaf, value, keeps_identity=True)


MAY_CONTAIN_UNIONS = (TaggedUnion, tuple, list, dict)


def unwrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that its arguments are unwrapped tagged unions."""

    def call(*arguments: Any, **named: Any) -> Any:
        if any(type(argument) in MAY_CONTAIN_UNIONS for argument in arguments):
            arguments = unwrap(arguments)
        return function(*arguments, **named)

    return call
