"""Pytrees as loop-carried and branch-modified variables: tuples, lists, dicts and tagged unions, flattened into leaves.

A form is the tree structure of a variable: `Leaf` a number, an array, or an invariant object; `Parts` a tuple, list or
dict with a form per element; `Choice` a tagged union. By their forms variables are flattened into the leaves that loops
carry and branches select, and rebuilt from these.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, State, is_number, kind_of
from jitkernels.compiler.capture.control_flow.tagged_union import OTHER, Choice, TaggedUnion, retagged
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.symbolic_dims import is_moving

MOST_PARTS, MOST_CONSTANTS, MOST_LEAVES = 32, 64, 256
"""Upper limits: elements of a flattened container, constants of a tagged union, leaves of one variable."""


class Leaf(NamedTuple):
    """A leaf. `like` is an example of its values; UNSET if there is none."""

    like: Any


class Parts(NamedTuple):
    """Elements of a tuple, list or dict; `names` are the keys of a dict."""

    kind: type
    names: tuple[Any, ...] | None
    parts: tuple[Any, ...]


class Composite:
    """An object made of arrays, which can be rebuilt from others like them. Rebuilt objects share an `origin`."""

    origin: Any

    def parts(self) -> Sequence[Any]:
        """The arrays."""
        raise NotImplementedError

    def of(self, parts: Sequence[Any]) -> Any:
        """The same object made of other arrays."""
        raise NotImplementedError


class CompositeForm(NamedTuple):
    """Such an object, and the forms of its arrays. Only objects of the same origin have this form."""

    like: Composite
    parts: tuple[Any, ...]


Form = Leaf | Parts | Choice | CompositeForm


class FormError(UnknownError):
    """A variable has a wider form than the traced one; `state` is the state to trace with next."""

    def __init__(self, state: "FlattenedState") -> None:
        super().__init__("a variable has another structure in each iteration")
        self.state = state


def form_of(value: Any) -> Form:
    """The form of a value."""
    if type(value) is TaggedUnion:
        return value.choice
    if value is None or type(value) is str:
        return Choice((value,), None)
    if isinstance(value, Composite):
        return CompositeForm(value, tuple(map(form_of, value.parts())))
    is_named = isinstance(value, tuple) and hasattr(value, "_fields")
    if (type(value) in (tuple, list) or is_named) and len(value) <= MOST_PARTS:
        return Parts(type(value), None, tuple(map(form_of, value)))
    if type(value) is dict and len(value) <= MOST_PARTS:
        return Parts(dict, tuple(value), tuple(map(form_of, value.values())))
    return Leaf(value)


def join_forms(first: Form | None, second: Form | None) -> Form | None:
    """The common form of two; None where there is none."""
    if first is None or second is None:
        return None
    if isinstance(first, Choice) or isinstance(second, Choice):
        return _choice(first, second)
    if isinstance(first, Leaf) and isinstance(second, Leaf):
        return second if first.like is UNSET else first
    if isinstance(first, Parts) and isinstance(second, Parts):
        if (first.kind, first.names, len(first.parts)) != (second.kind, second.names, len(second.parts)):
            return None
        parts = [join_forms(a, b) for a, b in zip(first.parts, second.parts, strict=True)]
        return None if any(part is None for part in parts) else Parts(first.kind, first.names, tuple(parts))
    leaf, form = (first, second) if isinstance(first, Leaf) else (second, first)
    return form if isinstance(leaf, Leaf) and leaf.like is UNSET else None


def _choice(first: Form, other: Form) -> Form | None:
    constants: list[Any] = []
    others: list[Form] = []
    for form in (first, other):
        if isinstance(form, Choice):
            known = Choice(tuple(constants), None)
            constants += [value for value in form.constants if known.tag_of(value) is None]
            others += [form.other] if form.other is not None else []
        elif not (isinstance(form, Leaf) and form.like is UNSET):
            others.append(form)
    joined = join_forms(*others) if len(others) == 2 else others[0] if others else None
    if len(constants) > MOST_CONSTANTS or (others and joined is None):
        return None
    return Choice(tuple(constants), joined)


def common_form(values: Sequence[Any]) -> Form | None:
    """The common form of a variable's values, if the variable has to be flattened."""
    if all(value is values[0] for value in values):
        return None
    form: Form | None = Leaf(UNSET)
    for value in values:
        form = join_forms(form, form_of(value))
    return None if isinstance(form, Leaf) else form


def leaves_of(value: Any, form: Form) -> list[Any] | None:
    """The leaves of a value; None where its form differs."""
    if value is UNSET:
        return [UNSET] * len(names_of("", form))
    if isinstance(form, Leaf):
        return [value] if isinstance(form_of(value), Leaf) else None
    if isinstance(form, Choice):
        return _leaves_of_choice(value, form)
    if isinstance(form, CompositeForm):
        has_origin = isinstance(value, Composite) and value.origin is form.like.origin
        return list(value.parts()) if has_origin else None
    own_form = form_of(value)
    if not isinstance(own_form, Parts) or (own_form.kind, own_form.names) != (form.kind, form.names):
        return None
    if len(own_form.parts) != len(form.parts):
        return None
    leaves: list[Any] = []
    elements = value.values() if form.kind is dict else value
    for element, part in zip(elements, form.parts, strict=True):
        inner = leaves_of(element, part)
        if inner is None:
            return None
        leaves += inner
    return leaves


def _leaves_of_choice(value: Any, form: Choice) -> list[Any] | None:
    tag: Any = form.tag_of(value)
    other: Any = UNSET
    if type(value) is TaggedUnion:
        if any(form.tag_of(constant) is None for constant in value.choice.constants):
            return None
        tag, other = retagged(value, form), value.other
    elif tag is None:
        tag, other = OTHER, value
    if form.other is None:
        return [tag] if other is UNSET else None
    inner = leaves_of(other, form.other)
    return None if inner is None else [tag, *inner]


def names_of(name: str, form: Form) -> list[str]:
    """The names of a variable's leaves. Leaves that a constant alternative leaves unset get names of temporaries."""
    if isinstance(form, Leaf):
        return [name]
    if isinstance(form, Choice):
        hidden = name if name.startswith("_jk_") else f"_jk_{name}"
        return [name, *(names_of(hidden, form.other) if form.other is not None else [])]
    return [leaf_name for i, part in enumerate(form.parts) for leaf_name in names_of(f"{name}[{i}]", part)]


def unflatten(tracer: Tracer, form: Form, leaves: Iterator[Any]) -> Any:
    """Rebuild the value that has these leaves."""
    if isinstance(form, Leaf):
        return next(leaves)
    if isinstance(form, Choice):
        tag = next(leaves)
        other = unflatten(tracer, form.other, leaves) if form.other is not None else UNSET
        if tag is UNSET:
            return UNSET
        if type(tag) is int:
            return form.constants[tag - 1] if tag != OTHER else other
        return TaggedUnion(tracer, form, tag, other)
    parts = [unflatten(tracer, part, leaves) for part in form.parts]
    if parts and all(part is UNSET for part in parts):
        return UNSET
    if isinstance(form, CompositeForm):
        return form.like.of(parts)
    if form.kind is dict:
        return dict(zip(form.names or (), parts, strict=True))
    return form.kind(parts) if form.kind in (tuple, list) else form.kind(*parts)


def arrays_in(value: Any) -> Iterator[Traced]:
    """The traced arrays and numbers that a value consists of."""
    if type(value) is Traced:
        yield value
    elif type(value) is TaggedUnion:
        yield value.tag
        yield from arrays_in(value.other)
    elif isinstance(value, Composite):
        yield from arrays_in(list(value.parts()))
    elif isinstance(value, tuple) or type(value) is list:
        for element in value:
            yield from arrays_in(element)
    elif type(value) is dict:
        yield from arrays_in(list(value.values()))


def filled(tracer: Tracer, leaves: Sequence[Any], form: Form) -> list[Any]:
    """Leaves with example values where the variable is a constant, so that their types are known."""
    likes = list(_likes(form, is_inside=False))
    return [
        _nothing_like(tracer, like) if leaf is UNSET and like is not UNSET else leaf
        for leaf, like in zip(leaves, likes, strict=True)
    ]


def _likes(form: Form, *, is_inside: bool) -> Iterator[Any]:
    if isinstance(form, Leaf):
        yield form.like if is_inside else UNSET
    elif isinstance(form, Choice):
        yield UNSET
        if form.other is not None:
            yield from _likes(form.other, is_inside=True)
    else:
        for part in form.parts:
            yield from _likes(part, is_inside=is_inside)


def _nothing_like(tracer: Tracer, like: Any) -> Any:
    kind = kind_of(like)
    if is_number(kind):
        return kind() if isinstance(kind, type) else np.dtype(kind).type(0)
    if type(like) is Traced and like.ndim and not any(map(is_moving, like.extents)):
        return fresh(tracer, builder.broadcast_to(builder.constant(0, like.node.dtype), like.extents))
    return UNSET


class FlattenedState(State):
    """The state of a loop or branch in which some variables are flattened, by their forms."""

    def __init__(self, tracer: Tracer, base: State, forms: dict[int, Form]) -> None:
        self.tracer, self.base, self.forms = tracer, base, forms
        names = [
            leaf_name
            for slot, name in enumerate(base.names)
            for leaf_name in names_of(name, forms.get(slot, Leaf(UNSET)))
        ]
        guarded = [
            leaf_name
            for slot, name in enumerate(base.names)
            if name in base.guarded
            for leaf_name in names_of(name, forms.get(slot, Leaf(UNSET)))
        ]
        super().__init__(tuple(names), self._read, self._put, base.line, guarded)
        self.entries = base.entries

    def _read(self) -> tuple[Any, ...]:
        return self.leaves(self.base.read(), fills=True)

    def leaves(self, values: Sequence[Any], *, fills: bool = False) -> tuple[Any, ...]:
        """Flatten the base's values; if `fills`, unset leaves get example values."""
        flattened: list[Any] = []
        for slot, value in enumerate(values):
            form = self.forms.get(slot)
            leaves = [value] if form is None else leaves_of(value, form)
            if leaves is None:
                raise self.form_error(slot, value)
            flattened += filled(self.tracer, leaves, form) if fills and form is not None else leaves
        return tuple(flattened)

    def _put(self, values: tuple[Any, ...]) -> None:
        remaining = iter(values)
        self.base.put(
            tuple(
                unflatten(self.tracer, self.forms.get(slot, Leaf(UNSET)), remaining)
                for slot in range(len(self.base.names))
            )
        )

    def form_error(self, slot: int, value: Any) -> UnknownError:
        """The error to raise where a variable of the base has another form."""
        wider = join_forms(self.forms.get(slot, Leaf(UNSET)), form_of(value))
        if wider is None or len(list(_likes(wider, is_inside=False))) > MOST_LEAVES:
            return UnknownError(f"{self.base.names[slot]!r} has different structures on different paths")
        return FormError(FlattenedState(self.tracer, self.base, {**self.forms, slot: wider}))

    def with_form(self, slot: int, form: Form) -> "FlattenedState":
        """The state with one more variable flattened: the one that is leaf `slot` of this state."""
        first_leaf = 0
        for base, _ in enumerate(self.base.names):
            if first_leaf == slot and base not in self.forms:
                return FlattenedState(self.tracer, self.base, {**self.forms, base: form})
            first_leaf += len(names_of("", self.forms.get(base, Leaf(UNSET))))
        raise UnknownError(f"{self.names[slot]!r} has different structures on different paths")


def flatten_variable(tracer: Tracer, state: State, slot: int, values: Sequence[Any]) -> None:
    """Raise FormError where a variable's values in a loop have a common form by which it can be flattened."""
    form = common_form(values)
    if form is not None:
        flattened = state if isinstance(state, FlattenedState) else FlattenedState(tracer, state, {})
        raise FormError(flattened.with_form(slot, form))
