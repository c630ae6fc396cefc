"""Equivalent arguments of other kinds than programs are written with, and the call path that serves them."""

import collections
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

INTS = "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
FLOATS = "float32", "float64"
SETTLING = 10
"""Number of calls after which all code is compiled, and compared with the plain function where that may be faster."""


def pickled(value: Any) -> Any:
    """Return the value with unpickled arrays, whose dtype objects are not NumPy's singletons."""
    return _mapped(value, lambda item: pickle.loads(pickle.dumps(item)) if type(item) is np.ndarray else item)


def computed(value: Any) -> Any:
    """Return the value with arrays that NumPy computed from unpickled ones."""
    return _mapped(value, lambda item: np.positive(pickled(item)) if _is_computable(item) else item)


def _is_computable(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype != bool and value.flags.c_contiguous


def not_interned(value: Any) -> Any:
    """Return the value with strings created at run time, which are not interned."""
    return _mapped(value, lambda item: "".join([*item, " "])[:-1] if type(item) is str else item)


def named(value: Any) -> Any:
    """Return the value with named tuples in place of tuples."""
    if type(value) is tuple:
        names = [f"part{i}" for i in range(len(value))]
        kind: Any = collections.namedtuple(f"Named{len(value)}", names)  # type: ignore[misc]  # noqa: PYI024
        return kind(*map(named, value))
    return [*map(named, value)] if type(value) is list else value


def numbers(name: str) -> Callable[[Any], Any]:
    """Return a function that converts Python numbers of a type to NumPy scalars where possible."""

    def convert(value: Any) -> Any:
        kind = {"i": int, "u": int, "f": float, "b": bool}[np.dtype(name).kind]
        if (
            type(value) is not kind
            or not isinstance(value, int | float)
            or (kind is int and not _holds(name, int(value)))
        ):
            return value
        return np.dtype(name).type(value)

    return lambda value: _mapped(value, convert)


def _holds(name: str, value: int) -> bool:
    return bool(np.iinfo(name).min <= value <= np.iinfo(name).max)


def _mapped(value: Any, make: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, make) for item in value)
    return {key: _mapped(item, make) for key, item in value.items()} if type(value) is dict else make(value)


KINDS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda value: value,
    "pickled": pickled,
    "computed from pickled": computed,
    "not interned": not_interned,
    "named tuples": lambda value: tuple(map(named, value)),
    **{name: numbers(name) for name in ("bool", "int32", "int64", "uint32", "uint64", *FLOATS)},
}


def entries_after(function: Any, arguments: Callable[[], tuple[Any, ...]], calls: int = 3) -> tuple[Any, ...]:
    """Return why calls after the first ones enter through Python."""
    with np.errstate(all="ignore"):
        for _ in range(SETTLING):
            function(*arguments())
        before = dict(function.stats().python_reasons)
        for _ in range(calls):
            function(*arguments())
    return tuple(pair for pair in function.stats().python_reasons if before.get(pair[0]) != pair[1])


def described(value: Any) -> Any:
    """Describe a result with its types."""
    if type(value) in (tuple, list):
        return [described(item) for item in value]
    return type(value), getattr(value, "dtype", None), np.shape(value), np.asarray(value).tolist()


def same(result: Any, expected: Any) -> None:
    """Require results of the same types, and nearly the same values."""
    if type(expected) in (tuple, list):
        assert type(result) is type(expected)
        for got, want in zip(result, expected, strict=True):
            same(got, want)
        return
    got, want = described(result), described(expected)
    assert got[:3] == want[:3]
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-12)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a call, or the type of its exception."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001  # any exception is an outcome
        return type(error)
