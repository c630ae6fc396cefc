"""What code does with objects depends on their classes, which may change between calls."""

import collections
import enum
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import TracingError

X = np.arange(1.0, 7.0)


class Config:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def doubled(self) -> float:
        return 2 * self.scale


class Descriptor:
    def __init__(self) -> None:
        self.number = 2.0

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else self.number


def helper(a: Any) -> Any:
    return a + 1


def _classes() -> tuple[Any, Any, Any, Any]:
    """New classes, which a test may change: a base, a derived one, a named tuple, and an enumeration."""

    class Base:
        offset = 1.0

        def inherited(self, a: Any) -> Any:
            return a + self.offset

    class Derived(Base):
        config = Config(3.0)
        described = Descriptor()
        absent = None
        members = frozenset({1, 2})
        counts = range(3)
        named = staticmethod(lambda a: a * 3)
        getter = operator.attrgetter("offset")
        kind = Config

        def __init__(self) -> None:
            self.own = 5.0

        def inherited(self, a: Any) -> Any:
            return super().inherited(a) * 2

        @property
        def computed(self) -> float:
            return self.own * self.config.scale

        @classmethod
        def of_class(cls, a: Any) -> Any:
            return a * 4

        def calls_helper(self, a: Any) -> Any:
            return helper(a) * self.own

        @property
        def by_helper(self) -> Any:
            return helper(self.own)

        def __bool__(self) -> bool:
            return True

        def __getitem__(self, index: int) -> float:
            return self.own + index

        def __call__(self, a: Any) -> Any:
            return a - self.own

    class Named(NamedTuple):
        first: float
        other: float

        def total(self) -> float:
            return self.first + self.other

    class Choice(enum.Enum):
        ONE = 1
        TWO = 2

        @property
        def tripled(self) -> int:
            return 3 * int(self.value)

        def __add__(self, other: float) -> float:
            return self.value + other

    return Base, Derived, Named, Choice


def _set(owner: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


def _delete(owner: Any, name: str) -> Callable[[], None]:
    return lambda: delattr(owner, name)


CASES: dict[str, tuple[Callable[[Any, Any], Any], Callable[..., list[Callable[[], None]]]]] = {
    "property": (
        lambda o, a: a * o.computed,
        lambda _, d, *__: [_set(d, "computed", property(lambda self: self.own)), _set(d, "computed", 7.0)],
    ),
    "static method": (
        lambda o, a: o.named(a),
        lambda _, d, *__: [
            _set(d, "named", staticmethod(lambda a: a * 9)),
            _set(d, "named", lambda self, a: a * self.own),
        ],
    ),
    "class method": (
        lambda o, a: o.of_class(a),
        lambda _, d, *__: [_set(d, "of_class", classmethod(lambda cls, a: a * 9))],
    ),
    "super": (
        lambda o, a: o.inherited(a),
        lambda b, *_: [_set(b, "inherited", lambda self, a: a), _set(b, "offset", 2)],
    ),
    "removed": (lambda o, a: o.inherited(a), lambda _, d, *__: [_delete(d, "inherited")]),
    "bases": (
        lambda o, a: o.inherited(a),
        lambda b, d, *_: [
            _delete(d, "inherited"),
            _set(d, "__bases__", (type("Other", (), {"inherited": lambda self, a: a * 50}),)),
        ],
    ),
    "object": (
        lambda o, a: a * o.config.scale,
        lambda _, d, *__: [_set(d.config, "scale", 4.0), _set(d, "config", Config(8.0)), _set(d.config, "more", 1)],
    ),
    "method of an object": (lambda o, a: a * o.config.doubled(), lambda _, d, *__: [_set(d.config, "scale", 4.0)]),
    "descriptor": (lambda o, a: a * o.described, lambda _, d, *__: [_set(vars(d)["described"], "number", 3.0)]),
    "none": (lambda o, a: a if o.absent is None else a * o.absent, lambda _, d, *__: [_set(d, "absent", 3)]),
    "set": (lambda o, a: a * (2 in o.members), lambda _, d, *__: [_set(d, "members", frozenset({3}))]),
    "range": (lambda o, a: a * sum(o.counts), lambda _, d, *__: [_set(d, "counts", range(5))]),
    "getter": (lambda o, a: a * o.getter(o), lambda _, d, *__: [_set(d, "getter", operator.attrgetter("own"))]),
    "class": (lambda o, a: a * o.kind(2.0).scale, lambda _, d, *__: [_set(d, "kind", lambda _, s: Config(s * 9))]),
    "truth": (
        lambda o, a: a if o else -a,
        lambda _, d, *__: [
            _set(d, "__bool__", lambda self: False),
            _delete(d, "__bool__"),
            _set(d, "__len__", lambda self: 0),
        ],
    ),
    "item": (lambda o, a: a * o[2], lambda _, d, *__: [_set(d, "__getitem__", lambda self, i: i)]),
    "call": (lambda o, a: o(a), lambda _, d, *__: [_set(d, "__call__", lambda self, a: a)]),
    "equality": (lambda o, a: a * (o == o.own), lambda _, d, *__: [_set(d, "__eq__", lambda self, other: True)]),
    "shadow": (lambda o, a: a * o.offset, lambda _, d, *__: [_set(d, "offset", 9.0)]),
}


@pytest.mark.per_push
@pytest.mark.parametrize("case", CASES)
def test_changed_classes(case: str) -> None:
    read, changes_of = CASES[case]
    classes = _classes()
    changes = [lambda: None, *changes_of(*classes)]
    owner = classes[1]()
    _follows(read, owner, changes)


@pytest.mark.per_push
def test_attributes_of_the_object_itself() -> None:
    """An attribute of the object hides those of its class that are no data descriptors."""
    _, derived, *_ = _classes()
    names = "named", "config", "described", "absent", "offset"
    reads: list[Callable[[Any, Any], Any]] = [
        lambda o, a: o.named(a), lambda o, a: a * o.config.scale, lambda o, a: a * o.described,
        lambda o, a: a if o.absent is None else a * 2, lambda o, a: a * o.offset,
    ]  # fmt: skip
    for name, read in zip(names, reads, strict=True):
        owner = derived()
        value = {"named": lambda a: a * 70, "config": Config(80.0)}.get(name, 90.0)
        _follows(read, owner, [lambda: None, _set(owner, name, value), _delete(owner, name)])


@pytest.mark.per_push
@pytest.mark.parametrize("name", ["named", "enum", "field"])
def test_named_tuples_and_enumerations(name: str) -> None:
    _, _, named, choice = _classes()
    if name == "named":
        changes = [lambda: None, _set(named, "total", lambda self: self.first), _set(named, "total", lambda self: 1.0)]
        _follows(lambda o, a: a * o.total(), named(2.0, 3.0), changes)
    elif name == "field":
        made = collections.namedtuple("made", "first")  # noqa: PYI024  # a class of its own
        _follows(lambda o, a: a * o.first, made(2.0), [lambda: None, _set(made, "first", property(lambda _: 9.0))])
    else:
        changes = [
            lambda: None,
            _set(choice, "tripled", property(lambda self: 4)),
            _set(choice, "__add__", lambda self, other: 7.0),
        ]
        _follows(lambda o, a: a * o.tripled + (o + 1), choice.TWO, changes)


def test_classes_as_globals() -> None:
    """Objects that the function makes, and members of a class that it names."""

    class Made:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        def scaled(self, a: Any) -> Any:
            return a * self.scale

    def make(_: Any, a: Any) -> Any:
        return Made(2.0).scaled(a)

    changes = [
        lambda: None,
        _set(Made, "__init__", lambda self, scale: setattr(self, "scale", scale * 5)),
        _set(Made, "scaled", lambda self, a: a),
    ]
    _follows(make, None, changes)
    plain = type("Plain", (), {"unbound": lambda a: a})
    _follows(lambda o, a: o.unbound(a), plain, [lambda: None, _set(plain, "unbound", lambda a: a * 3)])


@pytest.mark.per_push
@pytest.mark.parametrize("name", ["computed", "named", "__getitem__"])
def test_code_that_is_replaced_in_place(name: str) -> None:
    """Module reloaders do that."""
    _, derived, *_ = _classes()
    attribute = vars(derived)[name]
    function = getattr(attribute, "fget", None) or getattr(attribute, "__func__", attribute)
    codes = {"computed": lambda self: 50.0, "named": lambda a: a * 60, "__getitem__": lambda self, index: 70.0}
    reads: dict[str, Callable[[Any, Any], Any]] = {
        "computed": lambda o, a: a * o.computed, "named": lambda o, a: o.named(a), "__getitem__": lambda o, a: a * o[2],
    }  # fmt: skip
    replaced = codes[name].__code__
    _follows(reads[name], derived(), [lambda: None, lambda: setattr(function, "__code__", replaced)])


@pytest.mark.parametrize("case", ["calls_helper", "by_helper"])
def test_globals_of_methods(case: str) -> None:
    """Globals that methods and properties call may be bound to other functions."""
    _, derived, *_ = _classes()
    before = helper
    read = (lambda o, a: o.calls_helper(a)) if case == "calls_helper" else (lambda o, a: a * o.by_helper)
    try:
        changes = [
            lambda: None,
            lambda: globals().update(helper=lambda a: a * 30),
            lambda: globals().update(helper=abs),
        ]
        _follows(read, derived(), changes)
    finally:
        globals()["helper"] = before


@pytest.mark.per_push
@pytest.mark.parametrize("value", [{1}, collections.deque([1]), types.SimpleNamespace(a=1), [1], {1: 2}, np.ones(2)])
def test_shared_values_that_may_change_are_refused(value: Any) -> None:
    _, derived, *_ = _classes()
    derived.shared = value
    with pytest.raises(TracingError, match=r"Derived\.shared, which all objects of the class share"):
        jk.jit(lambda o, a: a * len(o.shared), strict=True)(derived(), X)


def test_class_guards_cost_no_fallback() -> None:
    """A change of an attribute that no code reads keeps the specialization."""
    _, derived, *_ = _classes()
    owner = derived()
    compiled = jk.jit(lambda o, a: a * o.computed + o.named(a), strict=True)
    for count in range(5):
        derived.unrelated = count
        np.testing.assert_array_equal(compiled(owner, X), X * 15 + X * 3)
    assert compiled.stats().compiles == 1


def test_descriptors_are_not_written() -> None:
    """A trace copies objects past the descriptors of their class, which would store its proxies."""

    class Stored(Descriptor):
        def __set__(self, owner: Any, value: Any) -> None:
            self.number = value

    stored = Stored()
    kind = type("Kind", (), {"value": stored})
    owner = kind()
    vars(owner)["value"] = 100.0
    _follows(lambda o, a: a * o.value, owner, [lambda: None, _set(stored, "number", 4.0)])
    assert stored.number == 4.0


def _follows(read: Callable[[Any, Any], Any], owner: Any, changes: list[Callable[[], None]]) -> None:
    """Calls see each change, with the owner as an argument and as a free variable."""

    def as_free_variable(a: Any) -> Any:
        return read(owner, a)

    compiled, other = jk.jit(read), jk.jit(as_free_variable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks
        for change in changes:
            change()
            expected = read(owner, X)
            for _ in range(2):
                np.testing.assert_array_equal(compiled(owner, X), expected)
                np.testing.assert_array_equal(other(X), expected)
