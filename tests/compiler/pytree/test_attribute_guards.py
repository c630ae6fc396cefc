"""Attributes that code looks for by name, or expects to miss, may come, change and go between calls."""

import contextlib
import dataclasses
import functools
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import TracingError

NAME, LONGER_NAME = "scale", "scale_of"


@dataclasses.dataclass
class Data:
    size: float = 2.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    size: float = 2.0


@dataclasses.dataclass(slots=True)
class Slots:
    size: float = 2.0


class Plain:
    size = 3.0


class Empty:
    pass


class Derived(Empty):
    def __init__(self) -> None:
        self.size = 2.0

    def double(self) -> float:
        return self.size * 2


class Named(NamedTuple):
    size: float = 2.0


def identity(value: Any) -> Any:
    return value


CLASSES = [Data, Frozen, Slots, Plain, Empty, Derived, Named]
OBJECTS: dict[str, Callable[[], Any]] = {
    "module": lambda: types.ModuleType("module"),
    "class": lambda: type("Made", (), {"size": 1.0}),
    "function": lambda: types.FunctionType(identity.__code__, globals(), "identity"),
    "partial": lambda: functools.partial(identity, 2.0),
}


def by_getattr(a: Any, c: Any) -> Any:
    return a * getattr(c, "scale", 1.0)


def by_hasattr(a: Any, c: Any) -> Any:
    return a * (c.scale if hasattr(c, "scale") else 3.0)


def by_attribute_error(a: Any, c: Any) -> Any:
    try:
        scale = c.scale
    except AttributeError:
        scale = 1.0
    return a * scale


def by_exception(a: Any, c: Any) -> Any:
    try:
        scale = _scale_of(c)
    except Exception:  # noqa: BLE001  # what is tested
        scale = 1.0
    return a * scale


def _scale_of(c: Any) -> Any:
    return c.scale


def by_suppress(a: Any, c: Any) -> Any:
    scale = 1.0
    with contextlib.suppress(AttributeError):
        scale = c.scale
    return a * scale


def by_dict(a: Any, c: Any) -> Any:
    return a * c.__dict__.get("scale", 1.0)


def by_vars(a: Any, c: Any) -> Any:
    return a * (2.0 if "scale" in vars(c) else 3.0)


def by_size(a: Any, c: Any) -> Any:
    return a * (len(c.__dict__) + 1)


def by_items(a: Any, c: Any) -> Any:
    total = 1.0
    for value in c.__dict__.values():
        total += value
    return a * total


def by_constant(a: Any, c: Any) -> Any:
    return a * getattr(c, NAME, 1.0)


def by_computed_name(a: Any, c: Any) -> Any:
    return a * getattr(c, LONGER_NAME[:5], 1.0)


def by_class(a: Any, c: Any) -> Any:
    return a * getattr(type(c), "scale", 1.0)


READS = [
    by_getattr, by_hasattr, by_attribute_error, by_exception, by_suppress, by_dict, by_vars, by_size, by_items,
    by_constant, by_computed_name, by_class,
]  # fmt: skip


def _functions(read: Callable[..., Any], owner: Any) -> list[Callable[[Any], Any]]:
    """The function of an array, with the owner as an argument, a free variable, and a default."""

    def as_free_variable(a: Any) -> Any:
        return read(a, owner)

    def as_default(a: Any, c: Any = owner) -> Any:
        return read(a, c)

    compiled = jk.jit(read)
    return [lambda a: compiled(a, owner), jk.jit(as_free_variable), jk.jit(as_default)]


def _outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (AttributeError, TypeError) as error:
        return type(error).__name__


def _follows(read: Callable[..., Any], owner: Any, holder: Any) -> None:
    """Calls see each change of an attribute of `holder`, which is the owner or its class."""
    a = np.ones(3)
    functions = _functions(read, owner)
    put = object.__setattr__ if isinstance(owner, Frozen) and holder is owner else setattr
    changes: list[Callable[[], Any]] = [
        lambda: None,
        lambda: put(holder, NAME, 5.0),
        lambda: put(holder, NAME, 6.0),
        lambda: object.__delattr__(holder, NAME) if put is object.__setattr__ else delattr(holder, NAME),
        lambda: put(holder, NAME, 7.0),
    ]
    for change in changes:
        change()
        for function in functions:
            for _ in range(2):
                expected, result = _outcome(read, a, owner), _outcome(function, a)
                assert type(result) is type(expected)
                assert np.array_equal(result, expected), (result, expected)


@pytest.mark.per_push(12)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", [*CLASSES, *OBJECTS])
@pytest.mark.parametrize("of_class", [False, True])
def test_changed_attributes(kind: Any, read: Callable[..., Any], of_class: bool) -> None:
    if isinstance(kind, str):
        owner = holder = OBJECTS[kind]()
    else:
        own = types.new_class(
            kind.__name__, (kind,), {}, lambda body: body.update(__slots__=()) if kind is Slots else None
        )
        owner = own()
        holder = own if of_class or kind is Slots else owner
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks
        _follows(read, owner, holder)


def test_guards_cost_no_fallback() -> None:
    """Lookups with a default are compiled, for each set of attributes once."""
    config = Plain()
    compiled = jk.jit(by_getattr, strict=True)
    a = np.ones(3)
    assert compiled(a, config)[0] == 1
    config.scale = 5.0  # type: ignore[attr-defined]
    assert compiled(a, config)[0] == 5
    del config.scale  # type: ignore[attr-defined]
    assert compiled(a, config)[0] == 1
    assert len(compiled.explain().specializations or ()) == 2


def test_a_computed_name_is_refused() -> None:
    with pytest.raises(TracingError, match="a computed name of an attribute, 'scale'"):
        jk.jit(by_computed_name, strict=True)(np.ones(3), Plain())
