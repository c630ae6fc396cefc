"""Pytrees as loop-carried and branch-modified variables: tuples, lists, dicts and tagged unions, flattened into leaves.

A form is the tree structure of a variable: `LeafForm` a number, an array, or an invariant object; `ContainerForm` a
tuple, list or dict with a form per element; `Alternatives` a tagged union. By their forms variables are flattened into
the leaves that loops carry and branches select, and rebuilt from these.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, State, is_number, kind_of
from jitkernels.compiler.capture.control_flow.tagged_union import OTHER, Alternatives, TaggedUnion
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, pytree
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant

MAX_ELEMENTS, MAX_CONSTANTS, MAX_LEAVES = 32, 64, 256
"""Upper limits: elements of a flattened container, constants of a tagged union, leaves of one variable."""


class LeafForm(NamedTuple):
    """A leaf. `like` is an example of its values; UNSET if there is none."""

    like: Any


class ContainerForm(NamedTuple):
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


COMPOSITES: dict[type, Callable[[Any], Composite]] = {}
"""Types of Python that are handled as such objects, and the functions that convert them."""


def composite(value: Any) -> Composite | None:
    """The value as an object made of arrays; None if it is none."""
    convert = COMPOSITES.get(type(value))
    return convert(value) if convert is not None else value if isinstance(value, Composite) else None


Form = LeafForm | ContainerForm | Alternatives | CompositeForm
UNSET_FORM = LeafForm(UNSET)


class FormError(UnsupportedError):
    """A variable has a wider form than the traced one; `state` is the state to trace with next."""

    def __init__(self, state: "FlattenedState") -> None:
        super().__init__("a variable has another structure in each iteration")
        self.state = state


def form_of(value: Any) -> Form:
    if type(value) is TaggedUnion:
        return value.alternatives
    if value is None or type(value) is str:
        return Alternatives((value,), None)
    whole = composite(value)
    if whole is not None:
        return CompositeForm(whole, tuple(map(form_of, whole.parts())))
    container = pytree.container_type(value)
    if container is None or len(value) > MAX_ELEMENTS:
        return LeafForm(value)
    names = tuple(value) if type(value) is dict else None
    return ContainerForm(type(value), names, tuple(map(form_of, container.children(value))))


def join_forms(first: Form | None, second: Form | None) -> Form | None:
    """The common form of two; None where there is none."""
    if first is None or second is None:
        return None
    if isinstance(first, Alternatives) or isinstance(second, Alternatives):
        return _join_alternatives(first, second)
    if _is_unset(first):
        return second
    if _is_unset(second) or (isinstance(first, LeafForm) and isinstance(second, LeafForm)):
        return first
    if isinstance(first, CompositeForm) and isinstance(second, CompositeForm):
        return first if first.like.origin == second.like.origin else None
    if not (isinstance(first, ContainerForm) and isinstance(second, ContainerForm)):
        return None
    if (first.kind, first.names, len(first.parts)) != (second.kind, second.names, len(second.parts)):
        return None
    parts = [join_forms(a, b) for a, b in zip(first.parts, second.parts, strict=True)]
    return None if None in parts else ContainerForm(first.kind, first.names, tuple(parts))


def _is_unset(form: Form) -> bool:
    return isinstance(form, LeafForm) and form.like is UNSET


def _join_alternatives(*forms: Form) -> Form | None:
    constants: list[Any] = []
    others: list[Form] = []
    for form in forms:
        if isinstance(form, Alternatives):
            known = Alternatives(tuple(constants), None)
            constants += [value for value in form.constants if known.tag_of(value) is None]
            others += [form.other] if form.other is not None else []
        elif not _is_unset(form):
            others.append(form)
    joined = join_forms(*others) if len(others) == 2 else others[0] if others else None
    if len(constants) > MAX_CONSTANTS or (others and joined is None):
        return None
    return Alternatives(tuple(constants), joined)


def common_form(values: Sequence[Any]) -> Form | None:
    """The common form of a variable's values, if the variable has to be flattened."""
    if all(value is values[0] for value in values):
        return None
    form: Form | None = UNSET_FORM
    for value in values:
        form = join_forms(form, form_of(value))
    return None if isinstance(form, LeafForm) else form


def leaves_of(value: Any, form: Form) -> list[Any] | None:
    """The leaves of a value; None where its form differs."""
    if value is UNSET:
        return [UNSET] * len(leaf_names("", form))
    if isinstance(form, LeafForm):
        return [value] if isinstance(form_of(value), LeafForm) else None
    if isinstance(form, Alternatives):
        return _leaves_of_union(value, form)
    if isinstance(form, CompositeForm):
        whole = composite(value)
        return list(whole.parts()) if whole is not None and whole.origin == form.like.origin else None
    own_form = form_of(value)
    if not isinstance(own_form, ContainerForm) or (own_form.kind, own_form.names) != (form.kind, form.names):
        return None
    if len(own_form.parts) != len(form.parts):
        return None
    leaves: list[Any] = []
    for element, part in zip(value.values() if form.kind is dict else value, form.parts, strict=True):
        inner = leaves_of(element, part)
        if inner is None:
            return None
        leaves += inner
    return leaves


def _leaves_of_union(value: Any, form: Alternatives) -> list[Any] | None:
    tag: Any = form.tag_of(value)
    other: Any = UNSET
    if type(value) is TaggedUnion:
        if any(form.tag_of(constant) is None for constant in value.alternatives.constants):
            return None
        tag, other = value.tag_among(form), value.other
    elif tag is None:
        tag, other = OTHER, value
    if form.other is None:
        return [tag] if other is UNSET else None
    inner = leaves_of(other, form.other)
    return None if inner is None else [tag, *inner]


def leaf_names(name: str, form: Form) -> list[str]:
    """The names of a variable's leaves. Leaves that a constant alternative leaves unset get names of temporaries."""
    if isinstance(form, LeafForm):
        return [name]
    if isinstance(form, Alternatives):
        hidden = name if name.startswith("_jk_") else f"_jk_{name}"
        return [name, *(leaf_names(hidden, form.other) if form.other is not None else [])]
    return [leaf_name for i, part in enumerate(form.parts) for leaf_name in leaf_names(f"{name}[{i}]", part)]


def unflatten(tracer: Tracer, form: Form, leaves: Iterator[Any]) -> Any:
    """Rebuild the value that has these leaves."""
    if isinstance(form, LeafForm):
        return next(leaves)
    if isinstance(form, Alternatives):
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
        return
    container = pytree.container_type(value)
    parts: Any = () if container is None else container.children(value)
    if type(value) is TaggedUnion:
        parts = (value.tag, value.other)
    elif isinstance(value, Composite):
        parts = value.parts()
    for part in parts:
        yield from arrays_in(part)


def _examples(form: Form, *, is_inside: bool = False) -> Iterator[Any]:
    """By leaf, an example of its values where it may be without one, because the variable is a constant; else UNSET."""
    if isinstance(form, LeafForm):
        yield form.like if is_inside else UNSET
    elif isinstance(form, Alternatives):
        yield UNSET
        if form.other is not None:
            yield from _examples(form.other, is_inside=True)
    else:
        for part in form.parts:
            yield from _examples(part, is_inside=is_inside)


def _zero_like(tracer: Tracer, like: Any) -> Any:
    kind = kind_of(like)
    if is_number(kind):
        return kind() if isinstance(kind, type) else np.dtype(kind).type(0)
    if type(like) is Traced and like.ndim and not any(map(is_loop_variant, like.extents)):
        return fresh(tracer, builder.broadcast_to(builder.constant(0, like.node.dtype), like.extents))
    return UNSET


class FlattenedState(State):
    """The state of a loop or branch in which some variables are flattened, by their forms."""

    def __init__(self, tracer: Tracer, base: State, forms: Mapping[int, Form]) -> None:
        self.tracer, self.base, self.forms = tracer, base, forms
        names = [leaf_names(name, self._form(slot)) for slot, name in enumerate(base.names)]
        guarded = [
            leaf for name, leaves in zip(base.names, names, strict=True) if name in base.guarded for leaf in leaves
        ]
        super().__init__(tuple(leaf for leaves in names for leaf in leaves), self._read, self._put, base.line, guarded)
        self.entries = base.entries

    def _form(self, slot: int) -> Form:
        return self.forms.get(slot, UNSET_FORM)

    def _read(self) -> tuple[Any, ...]:
        """The leaves, with zeros for those that are unset because the variable is a constant: so they have types."""
        leaves = self.leaves(self.base.read())
        examples = [like for slot in range(len(self.base.names)) for like in _examples(self._form(slot))]
        return tuple(
            _zero_like(self.tracer, like) if leaf is UNSET and like is not UNSET else leaf
            for leaf, like in zip(leaves, examples, strict=True)
        )

    def leaves(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Flatten values of the base."""
        flattened: list[Any] = []
        for slot, value in enumerate(values):
            form = self.forms.get(slot)
            leaves = [value] if form is None else leaves_of(value, form)
            if leaves is None:
                raise self._form_error(slot, value)
            flattened += leaves
        return tuple(flattened)

    def _put(self, values: tuple[Any, ...]) -> None:
        remaining = iter(values)
        self.base.put(
            tuple([unflatten(self.tracer, self._form(slot), remaining) for slot in range(len(self.base.names))])
        )

    def _form_error(self, slot: int, value: Any) -> UnsupportedError:
        """The error to raise where a variable of the base has another form."""
        wider = join_forms(self._form(slot), form_of(value))
        if wider is None or len(leaf_names("", wider)) > MAX_LEAVES:
            return UnsupportedError(f"{self.base.names[slot]!r} has different structures on different paths")
        return FormError(FlattenedState(self.tracer, self.base, {**self.forms, slot: wider}))

    def with_form(self, slot: int, form: Form) -> "FlattenedState":
        """The state with one more variable flattened: the one that is leaf `slot` of this state."""
        first_leaf = 0
        for base_slot in range(len(self.base.names)):
            if first_leaf == slot and base_slot not in self.forms:
                return FlattenedState(self.tracer, self.base, {**self.forms, base_slot: form})
            first_leaf += len(leaf_names("", self._form(base_slot)))
        raise UnsupportedError(f"{self.names[slot]!r} has different structures on different paths")


def flatten_variable(tracer: Tracer, state: State, slot: int, values: Sequence[Any]) -> None:
    """Raise FormError where a variable's values in a loop have a common form by which it can be flattened."""
    form = common_form(values)
    if form is not None:
        flattened = state if isinstance(state, FlattenedState) else FlattenedState(tracer, state, {})
        raise FormError(flattened.with_form(slot, form))
