"""Invalid and unusual arguments, which the fuzzer substitutes for valid ones.

Each entry of `VALUES` derives something from a valid argument; for any of it, the outcome must be a right result or
one of the package's own errors.
"""

import array
import decimal
import fractions
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from jitkernels.attrs.schema import error_bounds
from jitkernels.benchmarks.peers import array_layouts

Random = np.random.Generator
Make = Callable[[Any, Random], Any]


class Sub(np.ndarray[Any, np.dtype[Any]]):
    """A subclass of ndarray."""


class Converts:
    """An object that converts by ``__array__``, to whatever it was constructed with."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __array__(self, *arguments: Any, **named: Any) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class Interface:
    """An object with an ``__array_interface__``, right or wrong; it keeps the owner of the memory alive."""

    def __init__(self, interface: Any, owner: Any = None) -> None:
        self.__array_interface__ = interface
        self.owner = owner


class BadSequence:
    """A sequence that raises when it is read."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, at: int) -> Any:
        raise RuntimeError("a sequence that fails")


class NoUfunc:
    """An object that opts out of NumPy's ufuncs."""

    __array_ufunc__ = None


class Masked:
    """An object that has a mask but is no masked array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def mask(self) -> None:
        """Return a mask, as pandas objects have it."""

    def __array__(self, *arguments: Any, **named: Any) -> Any:
        return np.asarray(self.value)


class Number:
    """A number with ``__float__`` and ``__index__`` that raise."""

    def __float__(self) -> float:
        raise ValueError("a number that fails")

    def __index__(self) -> int:
        raise ValueError("a number that fails")


def as_array(value: Any) -> Any:
    return np.asarray(value)


def of_dtype(dtype: str) -> Make:
    def make(value: Any, random: Random) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return as_array(value).astype(dtype)

    return make


def viewed(function: Callable[[Any], Any]) -> Make:
    return lambda value, random: function(as_array(value))


def unaligned(value: Any) -> Any:
    room = np.zeros(value.nbytes + 1, np.uint8)
    view = room[1:].view(value.dtype).reshape(value.shape)
    view[...] = value
    return view


def cut(value: Any, random: Random) -> Any:
    """Return one element less along some axis."""
    array = as_array(value)
    if not array.ndim:
        return array.reshape(1)[:0]
    axis = int(random.integers(array.ndim))
    return array[(slice(None),) * axis + (slice(1, None),)]


def longer(value: Any, random: Random) -> Any:
    array = np.atleast_1d(as_array(value))
    return np.concatenate([array, array[:1]])


def empty(value: Any, random: Random) -> Any:
    """Return no elements along some axis."""
    array = np.atleast_1d(as_array(value))
    axis = int(random.integers(array.ndim))
    return array[(slice(None),) * axis + (slice(0),)]


def poisoned(value: Any, random: Random) -> Any:
    """Set some elements to NaN, infinities or other special numbers."""
    array = as_array(value).copy()
    if array.dtype.kind == "f" and array.size:
        with np.errstate(all="ignore"):
            array.reshape(-1)[random.integers(array.size, size=2)] = random.choice(
                [np.nan, np.inf, -np.inf, -0.0, 1e-40]
            )
    elif array.dtype.kind == "i" and array.size:
        array.reshape(-1)[int(random.integers(array.size))] = random.choice([-1, 1 << 30, -(1 << 30)])
    return array


def matrix(value: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(value) if value.ndim <= 2 else value


def series(value: Any) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return Masked(value)
    return pd.Series(value.reshape(-1)) if value.ndim <= 1 else pd.DataFrame(value.reshape(len(value), -1))


def same(thing: Any) -> Make:
    return lambda value, random: thing


FORMS: dict[str, Make] = {
    **{name: viewed(function) for name, function in array_layouts.LAYOUTS.items()},
    "transposed": viewed(lambda value: value.T),
    "memory of the transpose": viewed(array_layouts.transposed),
    "unaligned": viewed(unaligned),
    "swapped bytes": viewed(lambda value: value.astype(value.dtype.newbyteorder())),
    "subclass": viewed(lambda value: value.view(Sub)),
    "one element": viewed(lambda value: as_strided(value, value.shape, (0,) * value.ndim)),
    "matrix": viewed(matrix),
    "series": viewed(series),
    "masked": viewed(lambda value: np.ma.masked_array(value, mask=value > 1)),
    "has a mask method": viewed(Masked),
    "record": viewed(lambda value: value.view(np.recarray) if value.ndim else value),
    "zero strides": viewed(lambda value: np.broadcast_to(value.reshape(-1)[:1], value.shape) if value.size else value),
    "memoryview": viewed(lambda value: np.ascontiguousarray(value).data),
    "tuple": viewed(lambda value: tuple(value) if value.ndim else value.item()),
    "by __array__": viewed(Converts),
    "by __array_interface__": viewed(lambda value: Interface(value.__array_interface__, value)),
    "0-d": viewed(lambda value: value.reshape(-1)[:1].reshape(()) if value.size else value),
    "item": viewed(lambda value: value.reshape(-1)[0] if value.size else 0.0),
    "Python number": viewed(lambda value: value.reshape(-1)[0].item() if value.size else 0),
    "one axis more": viewed(lambda value: value[np.newaxis]),
    "another axis more": viewed(lambda value: value[..., np.newaxis]),
    "flat": viewed(lambda value: value.reshape(-1)),
    "sixty axes": viewed(lambda value: value.reshape((1,) * (60 - value.ndim) + value.shape)),
    "cut": cut,
    "longer": longer,
    "empty": empty,
    "poisoned": poisoned,
    **{dtype: of_dtype(dtype) for dtype in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")},
}
"""The same or similar values in another form; many of them are valid."""
WRONG: dict[str, Make] = {
    **{dtype: of_dtype(dtype) for dtype in ("g", "c8", "c16", "G", "O", "S4", "U4", "M8[s]", "m8[s]")},
    "structured": viewed(lambda value: np.zeros(value.shape, [("a", "f4"), ("b", "i4")])),
    "void": same(np.zeros(4, "V8")),
    "None": same(None),
    "text": same("text"),
    "bytes": same(b"bytes"),
    "bytearray": same(bytearray(b"bytes")),
    "object": same(object()),
    "type": same(np.ndarray),
    "function": same(len),
    "dict": same({"a": 1}),
    "set": same({1.0, 2.0}),
    "generator": lambda value, random: (float(i) for i in range(3)),
    "range": same(range(8)),
    "ellipsis": same(...),
    "slice": same(slice(3)),
    "complex": same(1 + 2j),
    "decimal": same(decimal.Decimal("1.5")),
    "fraction": same(fractions.Fraction(1, 3)),
    "huge int": same(10**400),
    "large int": same(1 << 63),
    "larger int": same(1 << 64),
    "minus": same(-5),
    "nan": same(float("nan")),
    "infinity": same(float("inf")),
    "ragged": same([[1.0, 2.0], [3.0]]),
    "ragged arrays": same([np.ones(3), np.ones(2)]),
    "deep list": same(np.zeros((1,) * 40).tolist()),
    "list with None": same([1.0, None]),
    "list of text": same(["1", "2"]),
    "empty list": same([]),
    "array.array": same(array.array("d", [1.0, 2.0])),
    "wrong __array__": lambda value, random: Converts("not an array"),
    "failing __array__": lambda value, random: Converts(ZeroDivisionError("an __array__ that fails")),
    "wrong interface": lambda value, random: Interface({"shape": (1 << 40,), "typestr": "<f4", "version": 3}),
    "no interface": lambda value, random: Interface(7),
    "failing sequence": lambda value, random: BadSequence(),
    "no ufunc": lambda value, random: NoUfunc(),
    "failing number": lambda value, random: Number(),
}
"""Values that are invalid for arrays, and valid for an option at most."""
HUGE: dict[str, Make] = {
    "huge": lambda value, random: np.broadcast_to(np.float32(1), (1 << 44,)),
    "huge, 2-D": lambda value, random: np.broadcast_to(np.float32(1), (1 << 22, 1 << 22)),
    "huge and empty": lambda value, random: np.broadcast_to(np.float32(1), (1 << 40, 0)),
}
"""Shapes whose result exceeds any memory; only for functions with results as large as their argument."""
OPTIONS: dict[str, Make] = {
    **{f"option {value!r}": same(value) for value in (0, 1, -1, -2, 5, 1 << 70, -(1 << 70), True, 0.5, -1.0, 1e-5)},
    **{
        f"option {value!r}": same(value)
        for value in ("sum", "mean", "max", "sqrt", "relu", "tanh", "SUM", "", "x" * 99)
    },
    "option np.int64": same(np.int64(-1)),
    "option np.float32": same(np.float32(1e-3)),
    "option np.str_": same(np.str_("mean")),
    "option 0-d": same(np.array(-1)),
    "option tuple": same((0, 1)),
    "option list": same([1, 2]),
    "option array": same(np.ones(3)),
}


def rounding(row: Any, attr: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> float:
    """Return the row's error bounds for these arguments, where cancellation amplifies rounding.

    `attr`: that of a kernel's call, None for an everyday one.
    """
    try:
        if attr is None:
            arguments_in = {name: value for name, value in named.items() if name != "out"}
            call = row.call(*arguments[: len(row.parameters().parameters)], **arguments_in)
            attr, inputs = call.attr, iter(call.inputs)
            parameters = attr.signature().arrays
            arguments = [next(inputs) if p.role == "in" else np.zeros(p.shape, p.numpy) for p in parameters]
        true = [np.zeros(p.shape) for p in attr.signature().outputs]
        distances = error_bounds.allowed(attr, arguments, true)
    except Exception:  # noqa: BLE001  # then the call fails too
        return 0.0
    return max(float(d[np.isfinite(d)].max(initial=0)) for d in distances)
