"""Array layouts and argument forms, from which the ordinary calls of all families are built.

Values lie in 0.5 to 1.5, so that a call repeated in place neither overflows nor reaches subnormal numbers.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import dtypes

Form = Callable[[AnyArray], Any]


@dataclass(frozen=True)
class OrdinaryCall:
    """Arguments that an everyday function and its equivalent both accept; `form` names what is special about them."""

    form: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)

    def bind(self, function: Callable[..., Any]) -> partial[Any]:
        """Bind a function to these arguments, positional and by keyword."""
        return partial(function, *self.arguments, **self.named)


def index_array(value: Any) -> AnyArray:
    """Return integers as ``ufunc.at`` takes them: NumPy crashes for those of 32 axes and more.

    Raises:
        ValueError: they have as many.
    """
    array = np.asarray(value)
    if array.ndim >= 32:
        raise ValueError(f"indices of {array.ndim} axes")
    return array


def shape(elements: int, dimensions: int) -> tuple[int, ...]:
    """Return extents of nearly equal size whose product is the number of elements: (24, 40) for 960 and 2."""
    extents = [1] * dimensions
    for factor in sorted(_prime_factors(elements), reverse=True):
        extents[extents.index(min(extents))] *= factor
    return tuple(sorted(extents))


def _prime_factors(number: int) -> Iterator[int]:
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            yield divisor
            number //= divisor
        divisor += 1


def values(extents: tuple[int, ...] | int, dtype: str = "float32") -> AnyArray:
    """Return an array of that shape; integers lie in 1 to 9."""
    generator = np.random.default_rng(0)
    if np.dtype(dtype).kind != "f":
        return generator.integers(1, 10, extents).astype(dtype)
    return generator.uniform(0.5, 1.5, extents).astype(dtype)


def strided(value: AnyArray) -> AnyArray:
    """Return the same values with a gap after each along every axis."""
    room = np.zeros(tuple(2 * extent for extent in value.shape), value.dtype)
    view = room[(slice(None, None, 2),) * value.ndim]
    view[...] = value
    return view


def columns(value: AnyArray) -> AnyArray:
    """Return the same values as the left part of a wider array: rows are contiguous, the whole is not."""
    room = np.zeros((*value.shape[:-1], value.shape[-1] + 3), value.dtype)
    view = room[..., : value.shape[-1]]
    view[...] = value
    return view


def reversed_(value: AnyArray) -> AnyArray:
    """Return the same values with negative strides along every axis."""
    back = (slice(None, None, -1),) * value.ndim
    return np.ascontiguousarray(value[back])[back]


def transposed(value: AnyArray) -> AnyArray:
    """Return the same values in the memory order of the transpose."""
    return np.ascontiguousarray(value.T).T


def read_only(value: AnyArray) -> AnyArray:
    copy = value.copy()
    copy.flags.writeable = False
    return copy


def byte_swapped(value: AnyArray) -> AnyArray:
    return value.astype(value.dtype.newbyteorder())


def unaligned(value: AnyArray) -> AnyArray:
    """Return the same values as a field of a packed record that begins with a byte."""
    room = np.zeros(value.shape, [("tag", "u1"), ("value", value.dtype)])
    view: AnyArray = room["value"]
    view[...] = value
    return view


def mapped(value: AnyArray) -> AnyArray:
    """Return the same values in a private memory-mapped file."""
    with tempfile.TemporaryFile() as file:
        view = np.memmap(file, value.dtype, "w+", shape=value.shape or (1,)).reshape(value.shape)
        view[...] = value
        return view


class Derived(np.ndarray[Any, Any]):
    """A subclass of ndarray."""


def derived(value: AnyArray) -> AnyArray:
    return value.view(Derived)


def repeated(value: AnyArray) -> AnyArray:
    """Return the first row repeated with stride 0."""
    return np.broadcast_to(value[:1], value.shape)


LAYOUTS: dict[str, Form] = {
    "strided": strided,
    "columns": columns,
    "reversed": reversed_,
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "list": lambda value: value.tolist(),
}
"""Layouts of an array with the same values."""
OF_ARRAYS: dict[str, Form] = {name: form for name, form in LAYOUTS.items() if name != "list"}
EVERYWHERE: dict[str, Form] = {
    **OF_ARRAYS,
    "transposed": transposed,
    "byte-swapped": byte_swapped,
    "unaligned": unaligned,
    "memory maps": mapped,
    "derived": derived,
    "repeated": repeated,
}
"""Layouts for the arrays of any call, indices included."""
DTYPES = tuple(name for name in dtypes.TABLE if name not in ("float32", "bfloat16"))
"""Types besides float32 that everyday functions take; the last is bool."""


def in_layouts(
    *arrays: AnyArray, fixed: Sequence[Any] = (), label: str = "{}", layouts: Mapping[str, Form] = LAYOUTS, **named: Any
) -> Iterator[OrdinaryCall]:
    """Yield a call with `arrays` in each layout, followed by the arguments `fixed`."""
    for name, form in layouts.items():
        yield OrdinaryCall(label.format(name), (*map(form, arrays), *fixed), named)


def in_dtypes(*arrays: AnyArray, fixed: Sequence[Any] = (), bools: bool = True, **named: Any) -> Iterator[OrdinaryCall]:
    """Yield a call with `arrays` in each dtype, followed by the arguments `fixed`."""
    for dtype in DTYPES if bools else DTYPES[:-1]:
        yield OrdinaryCall(dtype, (*(array.astype(dtype) for array in arrays), *fixed), named)


def in_all_forms(plain: OrdinaryCall) -> Iterator[OrdinaryCall]:
    """Yield a call with all its arrays in each layout, and with its numbers in other types."""
    for name, form in EVERYWHERE.items():
        yield OrdinaryCall(f"every array {name}", *_changed(plain, form, "fiu"))
    yield OrdinaryCall("every float in lists", *_changed(plain, LAYOUTS["list"], "f"))
    indices = [i for i, value in enumerate(plain.arguments) if _is_array(value, "f")]
    if len(indices) > 1:
        for name in ("float64", "int8"):
            mixed = [v.astype(name) if i == indices[-1] else v for i, v in enumerate(plain.arguments)]
            yield OrdinaryCall(f"the last float {name}", tuple(mixed), plain.named)
    if any(_is_array(value, "iu") for value in plain.arguments):
        for name in ("int16", "uint64"):
            yield OrdinaryCall(f"every integer {name}", *_changed(plain, _cast(name), "iu"))
        yield OrdinaryCall("every integer in lists", *_changed(plain, LAYOUTS["list"], "iu"))


def _cast(name: str) -> Form:
    """Return a conversion to another dtype."""
    return lambda value: value if value.min() < np.iinfo(name).min else value.astype(name)


def _is_array(value: Any, kinds: str) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.size > 0 and value.ndim > 0


def _changed(plain: OrdinaryCall, form: Form, kinds: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    def change(value: Any) -> Any:
        return form(value.copy()) if _is_array(value, kinds) else value

    return tuple(map(change, plain.arguments)), {name: change(v) for name, v in plain.named.items()}


def outs(results: AnyArray) -> dict[str, AnyArray]:
    """Return each kind of ``out`` for a result of that shape and dtype, by label."""
    return {
        "contiguous": np.zeros_like(results, order="C"),
        "strided": strided(np.zeros_like(results)),
        "columns": columns(np.zeros_like(results)),
        "Fortran": np.zeros(results.shape, results.dtype, order="F"),
        "float64": np.zeros(results.shape, np.float64),
        "byte-swapped": byte_swapped(np.zeros_like(results)),
        "unaligned": unaligned(np.zeros_like(results)),
    }


def with_outs(arguments: tuple[Any, ...], positions: int, result: AnyArray, **named: Any) -> Iterator[OrdinaryCall]:
    """Yield the call with each kind of ``out``: by keyword, and by position after `positions` arguments."""
    for kind, out in outs(result).items():
        yield OrdinaryCall(f"out={kind}", arguments, {**named, "out": out})
    if len(arguments) == positions and not named:
        yield OrdinaryCall("out by position", (*arguments, np.zeros_like(result)))
