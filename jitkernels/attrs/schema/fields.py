"""The fields of attrs: canonical values per field type, and their JSON form.

Equal attrs must be equal values, since they are keys of dictionaries and of files. So ``n=np.int64(8)`` becomes 8, a
dtype its name, and a float the nearest number of the attr's dtype, as a kernel sees no more of it.
"""

import ctypes
import dataclasses
import enum
import inspect
import math
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.core import dtypes
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import AttrError, RegistrationError, shown

FLOATS = ("float32", "float64")
NARROW = (*FLOATS, "bfloat16")
"""Dtypes of float arrays where a schema supports bfloat16 too."""
STORED_INTEGERS = ("int32", "int64", "uint64")
"""Dtypes of integers where a schema stores them: others are cast to the first of these that holds them."""
MAX_ARRAY_BYTES = 1 << 62
MIN_SINGLE = 2.0**-149
MAX_WHOLE = (1 << 63) - 1
Canonical = Callable[[str, Any], Any]


@frozen_dataclass
class Field:
    """How one field is checked, stored and read back.

    label: its name in messages, with its class. canonical: from a label and any value to the canonical value; raises
    AttrError. to_json and from_json: to plain JSON values and back. values: all allowed values, if they are few. least
    and most: the limits of a number. is_size: whether the work of a call depends on it. dtypes: all allowed dtypes.
    meaning: what the everyday function takes, in words, for a custom field.
    """

    label: str
    kind: str
    canonical: Canonical
    to_json: Callable[[Any], Any] = lambda value: value
    from_json: Callable[[Any], Any] = lambda value: value
    values: tuple[Any, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    is_size: bool = False
    dtypes: tuple[str, ...] = ()
    meaning: str = ""

    @property
    def is_integer(self) -> bool:
        """Whether C functions take it as an integer argument."""
        return self.kind in ("int", "whole")


def choice(*values: str, default: str) -> Any:
    """A field that takes one of these strings."""
    return dataclasses.field(default=default, metadata={"values": values})


def stored(*names: str, default: str) -> Any:
    """A field whose value is a storage dtype, where these are not `FLOATS`."""
    return dataclasses.field(default=default, metadata={"dtypes": names})


def real(*, default: float, least: float = -math.inf, most: float = math.inf, samples: tuple[float, ...] = ()) -> Any:
    """A field that takes finite floats from `least` to `most`; tests use `samples` beside the default.

    Limits must be exact in every dtype, or rounding could exceed them. Raises RegistrationError for other limits, and
    for a default or sample outside them.
    """
    for name, limit in (("least", least), ("most", most)):
        if limit != float(np.float32(limit)):
            raise RegistrationError(f"{name}: expected a number that float32 can hold, got {limit!r}")
    _refuse_outside(least, most, default, *samples)
    return dataclasses.field(default=default, metadata={"least": least, "most": most, "samples": samples})


def whole(
    *,
    default: Any = dataclasses.MISSING,
    least: int = 0,
    most: int = MAX_WHOLE,
    is_size: bool = True,
    samples: tuple[int, ...] = (),
) -> Any:
    """A field that takes ints from `least` to `most` that no input determines, as in ``topk(x, k=5)``.

    Shapes may refer to it, as that of a result of `k` elements. `is_size` says that a call's work depends on its
    value, so that it is measured at powers of two, as extents are; one seed is as good as another. Tests use `samples`
    beside the default; they are required where there is no default. Raises RegistrationError for a default or sample
    outside the limits.
    """
    _refuse_outside(least, most, *([] if default is dataclasses.MISSING else [default]), *samples)
    metadata = {"least": least, "most": most, "is_size": is_size, "samples": samples}
    return dataclasses.field(default=default, metadata=metadata)


def _refuse_outside(least: float, most: float, *values: float) -> None:
    """Raise RegistrationError for a declared value outside the declared limits."""
    for value in values:
        if not least <= value <= most:
            raise RegistrationError(f"expected a default and samples from {least:g} to {most:g}, got {value!r}")


def custom(
    canonical: Callable[[Any], Any],
    *,
    to_json: Callable[[Any], Any] = lambda value: value,
    from_json: Callable[[Any], Any] = lambda value: value,
    meaning: str = "",
    samples: tuple[Any, ...] = (),
    **more: Any,
) -> Any:
    """A field of any other type: `canonical` returns its hashable value or raises ValueError or TypeError.

    `meaning` says what it takes; tests use `samples` beside the default.
    """
    metadata: dict[str, Any] = {"canonical": canonical, "to_json": to_json, "from_json": from_json}
    metadata |= {"meaning": meaning, "samples": samples}
    return dataclasses.field(metadata=metadata, **more)


def fields_of(attr_class: type) -> dict[str, Field]:
    """The fields of an attr class by name. Raises RegistrationError for a type without a canonical form."""
    hints = typing.get_type_hints(attr_class)
    return {
        field.name: _field(attr_class, field, hints[field.name])
        for field in dataclasses.fields(attr_class)  # subclasses are dataclasses
    }


def _field(attr_class: type, field: "dataclasses.Field[Any]", hint: Any) -> Field:
    metadata = field.metadata
    origin = typing.get_origin(hint)
    label = f"{attr_class.__name__}: {field.name}"
    if "canonical" in metadata:
        check = _from_function(metadata["canonical"])
        json = metadata["to_json"], metadata["from_json"]
        return Field(label, "custom", check, *json, meaning=metadata["meaning"])
    if "values" in metadata:
        return Field(label, "choice", _one_of(metadata["values"]), values=metadata["values"])
    if hint is str and (field.name == "dtype" or field.name.endswith("_dtype")):
        known = metadata.get("dtypes", FLOATS)
        return Field(label, "dtype", _dtype(known), dtypes=known)
    if hint is bool:
        return Field(label, "bool", _bool, values=(False, True))
    if hint is int and "is_size" in metadata:
        least, most = metadata["least"], metadata["most"]
        check = _integer(least, most)
        return Field(label, "whole", check, least=least, most=most, is_size=metadata["is_size"])
    if hint is int:
        return Field(label, "int", _integer(0, MAX_ARRAY_BYTES), is_size=True)
    if hint is float:
        least = metadata.get("least", -math.inf)
        most = metadata.get("most", math.inf)
        return Field(label, "float", _float(least, most), least=least, most=most)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return Field(label, "choice", _member(hint), lambda m: m.name, lambda n: hint[n], tuple(hint))
    if hint is tuple or origin is tuple:
        return Field(label, "tuple", _tuple, _list, lambda value: _tuple("", value))
    raise RegistrationError(
        f"{attr_class.__name__}: {field.name}: expected int, bool, float, a dtype, tuple, Enum, choice(...) or "
        f"custom(...), got the type {hint!r}"
    )


def in_dtype(label: str, value: float, dtype: str) -> float:
    """Round a number to the dtype that arrays of `dtype` are computed in; raises AttrError on overflow.

    A nonzero value never becomes 0: that may be another computation, or an epsilon that guards a division.
    """
    nearest = value if dtypes.named(dtype).computed == "float64" else ctypes.c_float(value).value
    if nearest == 0 != value:
        nearest = math.copysign(MIN_SINGLE, value)
    if not math.isfinite(nearest):
        raise AttrError(f"{label}: expected a number that {dtype} can hold, got {value}")
    return nearest


def in_words(value: Any, dtype: object) -> str:
    """A field's value as text: floats in the shortest form that their dtype allows."""
    if isinstance(value, float) and dtype in ("float32", "bfloat16"):
        return str(np.float32(value))
    return value.name if isinstance(value, enum.Enum) else str(value)


def _from_function(canonical: Callable[[Any], Any]) -> Canonical:
    def check(label: str, value: Any) -> Any:
        try:
            result = canonical(value)
            hash(result)
        except (ValueError, TypeError) as error:
            raise AttrError(f"{label}: {error}") from error
        return result

    return check


def _one_of(values: tuple[str, ...]) -> Canonical:
    def check(label: str, value: Any) -> str:
        text = str.__str__(value) if isinstance(value, str) else None  # ignores overrides of derived types
        if text not in values:
            raise AttrError(f"{label}: expected one of {', '.join(values)}, got {shown(value)}")
        return text

    return check


def _member(kind: type[enum.Enum]) -> Canonical:
    def check(label: str, value: Any) -> enum.Enum:
        for member in kind:
            if value is member or (isinstance(value, str) and value == member.name):
                return member
        names = ", ".join(member.name for member in kind)
        raise AttrError(f"{label}: expected one of {names}, got {shown(value)}")

    return check


def _bool(label: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise AttrError(f"{label}: expected a bool, got {shown(value)}")
    return bool(value)


def _float(least: float, most: float) -> Canonical:
    def check(label: str, value: Any) -> float:
        real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        try:
            number = float(value) if real else math.nan
        except Exception:  # noqa: BLE001  # overflowing ints, and any error of a derived type
            number = math.nan
        if not math.isfinite(number):
            raise AttrError(f"{label}: expected a finite number, got {shown(value)}")
        if number < least:
            raise AttrError(f"{label}: expected {least:g} or more, got {number}")
        if number > most:
            raise AttrError(f"{label}: expected at most {most:.9g}, got {number}")
        return number + 0.0  # minus zero is zero

    return check


def _integer(least: int, most: int) -> Canonical:
    def check(label: str, value: Any) -> int:
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
            raise AttrError(f"{label}: expected an int, got {shown(value)}")
        if value < least:
            raise AttrError(f"{label}: expected {least} or more, got {shown(value)}")
        if value > most:
            raise AttrError(f"{label}: expected at most {most}, got {shown(value)}")
        return int(value)

    return check


def _dtype(known: tuple[str, ...]) -> Canonical:
    def check(label: str, value: Any) -> str:
        if type(value) is str and value in known:
            return value
        try:
            dtype = np.dtype(value)
            name = dtype.name if dtype.isnative and value is not None else dtype.str  # None would mean float64
        except Exception:  # noqa: BLE001  # np.dtype passes on any error of the object
            name = shown(value)
        if name not in known:
            raise AttrError(f"{label}: expected one of {', '.join(known)}, got {shown(value)}")
        return str(name)

    return check


def _tuple(label: str, value: Any) -> tuple[Any, ...]:
    """Tuples of ints, floats, strings, bools, None and nested tuples; lists and arrays are converted to tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, tuple | list):
        raise AttrError(f"{label}: expected a tuple, got {shown(value)}")
    return tuple(_item(label, item) for item in value)


def _item(label: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list | np.ndarray):
        return _tuple(label, value)
    if value is None or isinstance(value, int | float | str):
        return value
    raise AttrError(f"{label}: expected numbers, strings and tuples of them, got {shown(value)}")


def _list(value: Any) -> Any:
    return [_list(item) for item in value] if isinstance(value, tuple) else value


def power_of_two(extent: int) -> int:
    """The next power of two, 1 for 0."""
    return 1 << max(extent - 1, 0).bit_length()


def by_default(known: "Sequence[dataclasses.Field[Any]]") -> tuple[frozenset[str], dict[str, Any]]:
    """The names of fields without a default, and the defaults of the others."""
    defaults = {field.name: _default(field) for field in known}
    needed = frozenset(name for name, value in defaults.items() if value is inspect.Parameter.empty)
    return needed, {name: value for name, value in defaults.items() if name not in needed}


class FieldSignature:
    """``__signature__`` of a class: its fields as parameters, computed on access."""

    def __get__(self, instance: Any, owner: type[Any]) -> inspect.Signature:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(f.name, kind, default=_default(f), annotation=f.type) for f in dataclasses.fields(owner)]
        )


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is dataclasses.MISSING else field.default_factory()


def at_least(value: Any, least: int) -> Any:
    """The maximum of a number and a constant, in `KernelAttr.derive`: an expression of symbolic extents has its own."""
    return value.at_least(least) if hasattr(value, "at_least") else max(value, least)
