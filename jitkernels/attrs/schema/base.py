"""What every row has: the base class of attrs, and the small types that rows answer with."""

import functools
import inspect
import math
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields
from dataclasses import Field as DataclassField
from typing import Any, ClassVar, NoReturn, Self, dataclass_transform

from jitkernels.attrs import __name__ as attrs_package
from jitkernels.attrs import binding, declaration, import_all, import_family, roles
from jitkernels.attrs.binding import Call
from jitkernels.attrs.fields import (
    FLOATS,
    MOST_BYTES,
    NARROW,
    Field,
    choice,
    custom,
    fields_of,
    in_dtype,
    in_words,
    real,
    stored,
    whole,
)
from jitkernels.errors import ArgumentTypeError, AttrError, RegistrationError
from jitkernels.kernel_types import KernelType
from jitkernels.locks import making
from jitkernels.records import record
from jitkernels.signature import AnyArray, Argument, Signature

__all__ = [
    "FLOATS", "NARROW", "Call", "Case", "KernelAttr", "Tolerance", "cases", "choice", "custom", "power_of_two", "real",
    "rows", "stored", "sum_error", "whole",
]  # fmt: skip


class _Rows(dict[KernelType, "type[KernelAttr]"]):
    """The rows by their kernels. Whoever goes through them gets those of all families, which are imported first."""

    def __iter__(self) -> Iterator[KernelType]:
        self._complete()
        return super().__iter__()

    def __len__(self) -> int:
        self._complete()
        return super().__len__()

    def keys(self) -> KeysView[KernelType]:  # type: ignore[override]  # a dict's own view
        self._complete()
        return super().keys()

    def values(self) -> ValuesView["type[KernelAttr]"]:  # type: ignore[override]  # a dict's own view
        self._complete()
        return super().values()

    def items(self) -> ItemsView[KernelType, "type[KernelAttr]"]:  # type: ignore[override]  # a dict's own view
        self._complete()
        return super().items()

    def known(self) -> list["type[KernelAttr]"]:
        """Those that were imported."""
        return list(super().values())

    @staticmethod
    def _complete() -> None:
        with making:  # a fork waits for what is imported
            import_all()


rows = _Rows()


@record
class Tolerance:
    """How far a result may be from the true one, whatever finite numbers the arguments hold.

    `ulp` units in the last place of the true result, plus `terms` times the dtype's precision (from 1 to the
    next number) times the sum of the absolute terms that the result is made of: `KernelAttr.absolute_terms`
    computes that from the data. Where such a sum overflows, nothing is promised.

    Both are of the dtype that a kernel computes in: results of bfloat16 are such of float32, rounded once more.
    """

    ulp: float
    terms: float = 0.0


def sum_error(count: int) -> float:
    """The `terms` of a sum of so many: a tree of nodes that each add up to 16 in a row, and 16 roundings more.

    Every addition loses half a unit at most, so it is 2 for each doubling; one long chain loses far more.
    """
    return 8.0 + 2.0 * math.log2(max(count, 1))


@record
class Case:
    """A named attr of a sweep; "ci" cases run everywhere, "full" ones where there is time."""

    name: str
    attr: "KernelAttr"
    tags: frozenset[str]


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(choice, custom, real, stored, whole)
)
class KernelAttr:
    """Base of all attrs: a frozen value that names one kernel and all that it is specialised by.

    A subclass written ``class VMulAttr(VectorAttr, kernel_type="VMUL")`` becomes a row of the registry and a
    frozen keyword-only dataclass. Raises AttrError when a field has a wrong type or value.

    arrays: what the kernel takes, inputs first. floats: float fields that the C function takes after the
    integers (all int fields), as ``const double *``. options: what the everyday function takes after its
    arrays: fields by name, ``axis``, or ``shape`` where no input tells the leading dimensions. beyond: an array, how
    many dimensions of it this row has room for, and the row whose everyday function serves calls with more.
    implemented_as: the class whose implementations serve this one too, where rows are made when they are met.
    streams: extents of attrs that are told by what memory gives, of a row where that is not plain from their number.
    singles: extents for which the implementation made of the reference has code of its own where they are 1.
    """

    kernel_type: ClassVar[KernelType]
    arrays: ClassVar[tuple[Argument, ...]] = ()
    floats: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()
    beyond: ClassVar[tuple[str, int, str] | None] = None
    implemented_as: "ClassVar[type[KernelAttr] | None]" = None
    streams: ClassVar[tuple[tuple[int, ...], ...]] = ()
    singles: ClassVar[tuple[str, ...]] = ()
    __signature__: ClassVar[Any]
    _needed: ClassVar[frozenset[str]]
    _given: ClassVar[dict[str, Any]]
    _key: tuple[Any, ...]
    _hash: int
    _signature: Signature

    def __init_subclass__(cls, kernel_type: str | None = None) -> None:
        # All that it would compile from text, which takes long for so many classes, is below.
        dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
        cls.__signature__ = _Fields()
        cls._needed, cls._given = _by_default(fields(cls))  # type: ignore[arg-type]  # it is one now
        if kernel_type is None:
            return
        if kernel_type != kernel_type.upper() or not kernel_type.isidentifier():
            raise RegistrationError(f"kernel type {kernel_type!r}: expected an upper-case identifier")
        declaration.check_declaration(cls)
        if not cls.__module__.startswith(f"{attrs_package}."):
            import_family(kernel_type)  # if there is one of ours it stays
        cls.kernel_type = KernelType.add(kernel_type)
        if rows.setdefault(cls.kernel_type, cls) is not cls:
            raise RegistrationError(
                f"kernel type {kernel_type} already has the row {rows[cls.kernel_type].__name__}"
            )

    def __init__(self, *arguments: Any, **given: Any) -> None:
        if arguments or not self._needed <= given.keys() <= self._needed | self._given.keys():
            self._refuse(arguments, given)
        self.__dict__.update(self._given)
        self.__dict__.update(given)
        self.__post_init__()

    def _refuse(self, arguments: Sequence[Any], given: Mapping[str, Any]) -> NoReturn:
        """Raise ArgumentTypeError where fields are missing, unknown or not given by name."""
        known = inspect.signature(type(self))
        listed = ", ".join(
            p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in known.parameters.values()
        )
        try:
            known.bind(*arguments, **given)
        except TypeError as error:
            raise ArgumentTypeError(f"{type(self).__name__}: expected {listed}, by name: {error}") from None
        raise AssertionError("fields that are neither missing nor unknown")

    def __post_init__(self) -> None:
        """Make all values what they are for good, and all that follows from them. Raises AttrError for a wrong one."""
        values = self.__dict__
        known = self.known_fields()
        for name, field in known.items():
            values[name] = field.canonical(field.label, values[name])
        for name, field in known.items():
            if field.kind == "float":
                values[name] = in_dtype(field.label, values[name], values.get("dtype", "float64"))
        arrays = [array for argument in self.arrays if (array := argument.array(values)) is not None]
        for array in arrays:
            if array.nbytes > MOST_BYTES:
                raise AttrError(f"{type(self).__name__}: array {array.name} would have {array.nbytes} bytes")
        integers = [(name, values[name]) for name, field in known.items() if field.is_integer]
        floats = [(name, values[name]) for name in self.floats]
        values["_signature"] = Signature(tuple(arrays), tuple(integers), tuple(floats))
        values["_key"] = key = (type(self), *[values[name] for name in known])
        values["_hash"] = hash(key)

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr]  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Of the same class and equal in every field."""
        try:
            return self._key == other._key  # type: ignore[attr-defined,no-any-return]  # if it has one
        except AttributeError:
            return NotImplemented

    def __hash__(self) -> int:
        """Computed once: attrs are looked up at each call, and attrs of other classes differ in it."""
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is made anew from its fields: hashes hold in one process only."""
        return _remade, (type(self), self.fields())

    @classmethod
    def known_fields(cls) -> Mapping[str, Field]:
        """How each field is checked and stored, by name."""
        return _fields(cls)  # type: ignore[arg-type]  # a class is hashable

    @property
    def name(self) -> str:
        """The kernel's name in lower case, as in ``jk.vmul``."""
        return self.kernel_type.name.lower()

    def signature(self) -> Signature:
        """The arguments of the kernel for this attr."""
        return self._signature

    def tolerance(self) -> Tolerance:
        """How far from the true result an implementation may be."""
        raise NotImplementedError

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """For each output, element by element, the sum of the absolute terms that rounding is relative to.

        `arrays` are those of a call, in double, an inout one before it. Only rows whose `Tolerance` has
        `terms` need this. Infinite where too large a number on the way spoils the result, NaN where an
        infinite one does.
        """
        raise NotImplementedError

    def operations(self) -> float:
        """Arithmetic operations of one call, a transcendental function counted as 16."""
        raise NotImplementedError

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        """The attrs that tests, benchmarks and the tuner go through."""
        raise NotImplementedError

    @property
    def without_extents(self) -> tuple[Any, ...]:
        """The values of those fields that are no sizes."""
        return tuple([self.__dict__[name] for name in _others(type(self))])  # type: ignore[arg-type]  # a class is hashable

    def extents(self) -> dict[str, int]:
        """Those fields that are sizes."""
        values = self.fields()
        return {name: values[name] for name, field in self.known_fields().items() if field.is_size}

    def tuning_class(self) -> Self:
        """The attr that is measured on behalf of this one: sizes at the next power of two, usual numbers.

        Every other field is kept, and a float that is 0 stays 0, as that may be another computation.
        """
        changed = self.fields()
        for name, field in self.known_fields().items():
            if field.is_size:
                changed[name] = int(min(power_of_two(changed[name]), field.most))
            elif field.kind == "whole":
                changed[name] = getattr(type(self), name, field.least)
            elif field.kind == "float" and changed[name]:
                usual = getattr(type(self), name, 0.0) or (1.0 if field.most >= 1 else field.most / 2)
                changed[name] = in_dtype(field.label, usual, changed.get("dtype", "float64"))
        return self if changed == self.fields() else type(self)(**changed)

    @classmethod
    def call(cls, *arguments: Any, **named: Any) -> Call:
        """An everyday call in terms of the kernel; its parameters are `parameters`.

        Raises ArgumentTypeError, ArgumentError or AttrError naming the argument, what was expected and what came.
        """
        return binding.bound(cls, arguments, named)

    @classmethod
    def parameters(cls) -> inspect.Signature:
        """Parameters of the everyday function, but for ``out``: arrays, then options."""
        return _parameters(cls)  # type: ignore[arg-type]  # a class is hashable

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        """Raise DataIndexError if the values in the arrays point outside others."""

    def text(self) -> str:
        """Fields as ``n=1024, dtype=float32``."""
        dtype = self.__dict__.get("dtype")
        return ", ".join(f"{key}={in_words(value, dtype)}" for key, value in self.fields().items())

    def fields(self) -> dict[str, Any]:
        """Fields by name."""
        return {name: self.__dict__[name] for name in self.known_fields()}

    def to_json(self) -> dict[str, Any]:
        """Kernel and fields as plain JSON values."""
        known = self.known_fields()
        values = {name: field.to_json(self.__dict__[name]) for name, field in known.items()}
        return {"kernel": self.kernel_type.name, **values}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """The attr that `to_json` was called on; raises AttrError where that cannot be."""
        known = cls.known_fields()
        if content.get("kernel") != cls.kernel_type.name or {*content} != {"kernel", *known}:
            raise AttrError(f"{cls.__name__}: expected kernel and fields {', '.join(known)}, got {content!r}")
        try:
            return cls(**{name: field.from_json(content[name]) for name, field in known.items()})
        except (KeyError, TypeError, ValueError) as error:
            raise AttrError(f"{cls.__name__}: cannot be read from {content!r}: {error}") from error


def _by_default(known: "Sequence[DataclassField[Any]]") -> tuple[frozenset[str], dict[str, Any]]:
    """The fields without a default, and those that have one, which never changes."""
    defaults = {field.name: _default(field) for field in known}
    needed = frozenset(name for name, value in defaults.items() if value is inspect.Parameter.empty)
    return needed, {name: value for name, value in defaults.items() if name not in needed}


class _Fields:
    """``__signature__`` of a class: its fields by name, worked out for the few who ask."""

    def __get__(self, instance: Any, owner: type[Any]) -> inspect.Signature:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Signature(
            [inspect.Parameter(f.name, kind, default=_default(f), annotation=f.type) for f in fields(owner)]
        )


def _default(field: "DataclassField[Any]") -> Any:
    if field.default is not MISSING:
        return field.default
    return inspect.Parameter.empty if field.default_factory is MISSING else field.default_factory()


def _remade(attr_class: type[KernelAttr], fields: dict[str, Any]) -> KernelAttr:
    return attr_class(**fields)


@functools.cache
def _fields(attr_class: type[KernelAttr]) -> dict[str, Field]:
    return fields_of(attr_class)


@functools.cache
def _others(attr_class: type[KernelAttr]) -> tuple[str, ...]:
    return tuple(name for name, field in attr_class.known_fields().items() if not field.is_size)


@functools.cache
def _parameters(attr_class: type[KernelAttr]) -> inspect.Signature:
    return roles.parameters(attr_class)


def power_of_two(extent: int) -> int:
    """The next power of two, 1 for 0."""
    return 1 << max(extent - 1, 0).bit_length()


def cases(attrs: Iterable[KernelAttr], *, ci: Iterable[KernelAttr] = ()) -> list[Case]:
    """Cases named after their fields: all tagged "full", those also in `ci` tagged "ci" too."""
    everywhere = dict.fromkeys(ci)
    ordered = dict.fromkeys([*everywhere, *attrs])
    tags = {True: frozenset({"ci", "full"}), False: frozenset({"full"})}
    return [Case(_case_name(attr), attr, tags[attr in everywhere]) for attr in ordered]


def _case_name(attr: KernelAttr) -> str:
    dtype = attr.fields().get("dtype", "")
    parts = [f"{key}{in_words(value, dtype)}" for key, value in attr.fields().items() if key != "dtype"]
    return "-".join([*parts, dtype.replace("float", "f")]) if dtype else "-".join(parts)
