"""Variables that hold tuples, lists or dicts, or one of several things by choice, as numbers and arrays.

A form says what a variable holds: `Leaf` a number, an array, or an object that stays what it is; `Parts` a tuple, list
or dict with a form for each element; `Choice` a constant or something else. By their forms variables are taken apart
into leaves, which loops carry and branches choose between, and put together again.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.frontends.flow.alternatives import OTHER, Choice, Chosen, recoded
from jitkernels.frontends.flow.state import UNSET, State, is_number, kind_of
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import is_moving

MOST_PARTS, MOST_CONSTANTS, MOST_LEAVES = 32, 64, 256
"""Elements that are taken apart, constants that a variable may have, and leaves of it, at most."""


class Leaf(NamedTuple):
    """A value by itself. `like` is one of those that it may have; UNSET if there is none."""

    like: Any


class Parts(NamedTuple):
    """Elements of a tuple, list or dict; of a dict `names` are its keys."""

    kind: type
    names: tuple[Any, ...] | None
    parts: tuple[Any, ...]


class Compound:
    """What is made of arrays, and can be made of others like them. Those of one have its `origin`."""

    origin: Any

    def parts(self) -> Sequence[Any]:
        """The arrays."""
        raise NotImplementedError

    def of(self, parts: Sequence[Any]) -> Any:
        """The same of other arrays."""
        raise NotImplementedError


class Made(NamedTuple):
    """Such a value, and the forms of its arrays. There is no other one like it."""

    like: Compound
    parts: tuple[Any, ...]


Form = Leaf | Parts | Choice | Made


class FormError(UnknownError):
    """A variable has another form than was thought: what it is traced with next."""

    def __init__(self, state: "Apart") -> None:
        super().__init__("a variable has another form in each round")
        self.state = state


def form_of(value: Any) -> Form:
    """The form of a value."""
    if type(value) is Chosen:
        return value.choice
    if value is None or type(value) is str:
        return Choice((value,), None)
    if isinstance(value, Compound):
        return Made(value, tuple(map(form_of, value.parts())))
    is_named = isinstance(value, tuple) and hasattr(value, "_fields")
    if (type(value) in (tuple, list) or is_named) and len(value) <= MOST_PARTS:
        return Parts(type(value), None, tuple(map(form_of, value)))
    if type(value) is dict and len(value) <= MOST_PARTS:
        return Parts(dict, tuple(value), tuple(map(form_of, value.values())))
    return Leaf(value)


def joined_form(one: Form | None, other: Form | None) -> Form | None:
    """The form of what is one or the other; None where there is none."""
    if one is None or other is None:
        return None
    if isinstance(one, Choice) or isinstance(other, Choice):
        return _choice(one, other)
    if isinstance(one, Leaf) and isinstance(other, Leaf):
        return other if one.like is UNSET else one
    if isinstance(one, Parts) and isinstance(other, Parts):
        if (one.kind, one.names, len(one.parts)) != (other.kind, other.names, len(other.parts)):
            return None
        parts = [joined_form(a, b) for a, b in zip(one.parts, other.parts, strict=True)]
        return None if any(part is None for part in parts) else Parts(one.kind, one.names, tuple(parts))
    leaf, form = (one, other) if isinstance(one, Leaf) else (other, one)
    return form if isinstance(leaf, Leaf) and leaf.like is UNSET else None


def _choice(one: Form, other: Form) -> Form | None:
    constants: list[Any] = []
    others: list[Form] = []
    for form in (one, other):
        if isinstance(form, Choice):
            known = Choice(tuple(constants), None)
            constants += [value for value in form.constants if known.number_of(value) is None]
            others += [form.other] if form.other is not None else []
        elif not (isinstance(form, Leaf) and form.like is UNSET):
            others.append(form)
    found = joined_form(*others) if len(others) == 2 else others[0] if others else None
    if len(constants) > MOST_CONSTANTS or (others and found is None):
        return None
    return Choice(tuple(constants), found)


def between(values: Sequence[Any]) -> Form | None:
    """The form of a variable that has one of some values, if it has to be taken apart."""
    if all(one is values[0] for one in values):
        return None
    found: Form | None = Leaf(UNSET)
    for one in values:
        found = joined_form(found, form_of(one))
    return None if isinstance(found, Leaf) else found


def leaves_of(value: Any, form: Form) -> list[Any] | None:
    """The leaves of a value; None where it has another form."""
    if value is UNSET:
        return [UNSET] * len(names_of("", form))
    if isinstance(form, Leaf):
        return [value] if isinstance(form_of(value), Leaf) else None
    if isinstance(form, Choice):
        return _leaves_of_choice(value, form)
    if isinstance(form, Made):
        is_it = isinstance(value, Compound) and value.origin is form.like.origin
        return list(value.parts()) if is_it else None
    mine = form_of(value)
    if not isinstance(mine, Parts) or (mine.kind, mine.names) != (form.kind, form.names):
        return None
    if len(mine.parts) != len(form.parts):
        return None
    found: list[Any] = []
    elements = value.values() if form.kind is dict else value
    for one, part in zip(elements, form.parts, strict=True):
        inner = leaves_of(one, part)
        if inner is None:
            return None
        found += inner
    return found


def _leaves_of_choice(value: Any, form: Choice) -> list[Any] | None:
    tag: Any = form.number_of(value)
    other: Any = UNSET
    if type(value) is Chosen:
        if any(form.number_of(one) is None for one in value.choice.constants):
            return None
        tag, other = recoded(value, form), value.other
    elif tag is None:
        tag, other = OTHER, value
    if form.other is None:
        return [tag] if other is UNSET else None
    inner = leaves_of(other, form.other)
    return None if inner is None else [tag, *inner]


def names_of(name: str, form: Form) -> list[str]:
    """The names of the leaves of a variable. Those that may have no value, as it is a constant, are no variables."""
    if isinstance(form, Leaf):
        return [name]
    if isinstance(form, Choice):
        hidden = name if name.startswith("_jk_") else f"_jk_{name}"
        return [name, *(names_of(hidden, form.other) if form.other is not None else [])]
    return [one for i, part in enumerate(form.parts) for one in names_of(f"{name}[{i}]", part)]


def put_together(tracer: Tracer, form: Form, leaves: Iterator[Any]) -> Any:
    """The value that has such leaves."""
    if isinstance(form, Leaf):
        return next(leaves)
    if isinstance(form, Choice):
        tag = next(leaves)
        other = put_together(tracer, form.other, leaves) if form.other is not None else UNSET
        if tag is UNSET:
            return UNSET
        if type(tag) is int:
            return form.constants[tag - 1] if tag != OTHER else other
        return Chosen(tracer, form, tag, other)
    parts = [put_together(tracer, one, leaves) for one in form.parts]
    if parts and all(one is UNSET for one in parts):
        return UNSET
    if isinstance(form, Made):
        return form.like.of(parts)
    if form.kind is dict:
        return dict(zip(form.names or (), parts, strict=True))
    return form.kind(parts) if form.kind in (tuple, list) else form.kind(*parts)


def arrays_in(value: Any) -> Iterator[Traced]:
    """The arrays and numbers of a trace that a value is made of."""
    if type(value) is Traced:
        yield value
    elif type(value) is Chosen:
        yield value.tag
        yield from arrays_in(value.other)
    elif isinstance(value, Compound):
        yield from arrays_in(list(value.parts()))
    elif isinstance(value, tuple) or type(value) is list:
        for one in value:
            yield from arrays_in(one)
    elif type(value) is dict:
        yield from arrays_in(list(value.values()))


def filled(tracer: Tracer, leaves: Sequence[Any], form: Form) -> list[Any]:
    """Leaves with something like what they may be where a variable is a constant: types are known from it."""
    likes = list(_likes(form, is_inside=False))
    return [
        _nothing_like(tracer, like) if one is UNSET and like is not UNSET else one
        for one, like in zip(leaves, likes, strict=True)
    ]


def _likes(form: Form, *, is_inside: bool) -> Iterator[Any]:
    if isinstance(form, Leaf):
        yield form.like if is_inside else UNSET
    elif isinstance(form, Choice):
        yield UNSET
        if form.other is not None:
            yield from _likes(form.other, is_inside=True)
    else:
        for one in form.parts:
            yield from _likes(one, is_inside=is_inside)


def _nothing_like(tracer: Tracer, like: Any) -> Any:
    kind = kind_of(like)
    if is_number(kind):
        return kind() if isinstance(kind, type) else np.dtype(kind).type(0)
    if type(like) is Traced and like.ndim and not any(map(is_moving, like.extents)):
        return fresh(tracer, construct.broadcast_to(construct.constant(0, like.node.dtype), like.extents))
    return UNSET


class Apart(State):
    """The state of a loop some of whose variables are taken apart, by their forms."""

    def __init__(self, tracer: Tracer, base: State, forms: dict[int, Form]) -> None:
        self.tracer, self.base, self.forms = tracer, base, forms
        names = [
            one
            for place, name in enumerate(base.names)
            for one in names_of(name, forms.get(place, Leaf(UNSET)))
        ]
        guarded = [
            one
            for place, name in enumerate(base.names)
            if name in base.guarded
            for one in names_of(name, forms.get(place, Leaf(UNSET)))
        ]
        super().__init__(tuple(names), self._read, self._put, base.line, guarded)
        self.entries = base.entries

    def _read(self) -> tuple[Any, ...]:
        return self.leaves(self.base.read(), fills=True)

    def leaves(self, values: Sequence[Any], *, fills: bool = False) -> tuple[Any, ...]:
        """The values of the base taken apart; if `fills`, with something like what they may be."""
        found: list[Any] = []
        for place, value in enumerate(values):
            form = self.forms.get(place)
            leaves = [value] if form is None else leaves_of(value, form)
            if leaves is None:
                raise self.misfit(place, value)
            found += filled(self.tracer, leaves, form) if fills and form is not None else leaves
        return tuple(found)

    def _put(self, values: tuple[Any, ...]) -> None:
        remaining = iter(values)
        self.base.put(
            tuple(
                put_together(self.tracer, self.forms.get(place, Leaf(UNSET)), remaining)
                for place in range(len(self.base.names))
            )
        )

    def misfit(self, place: int, value: Any) -> UnknownError:
        """What is raised where a variable of the base has another form."""
        wider = joined_form(self.forms.get(place, Leaf(UNSET)), form_of(value))
        if wider is None or len(list(_likes(wider, is_inside=False))) > MOST_LEAVES:
            return UnknownError(f"{self.base.names[place]!r} is one thing here and another there")
        return FormError(Apart(self.tracer, self.base, {**self.forms, place: wider}))

    def with_form(self, place: int, form: Form) -> "Apart":
        """The state with a variable taken apart. `place` is one of those of the base that are not."""
        at = 0
        for base, _ in enumerate(self.base.names):
            if at == place and base not in self.forms:
                return Apart(self.tracer, self.base, {**self.forms, base: form})
            at += len(names_of("", self.forms.get(base, Leaf(UNSET))))
        raise UnknownError(f"{self.names[place]!r} is one thing here and another there")


def taken_apart(tracer: Tracer, state: State, place: int, values: Sequence[Any]) -> None:
    """Raise FormError where a variable has forms in a loop that can be taken apart."""
    form = between(values)
    if form is not None:
        apart = state if isinstance(state, Apart) else Apart(tracer, state, {})
        raise FormError(apart.with_form(place, form))
