"""The base class of attrs (op schemas), and the small types of their declarations."""

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any, ClassVar, NoReturn, Self, TypeVar, dataclass_transform

from jitkernels.attrs.schema import argument_binding, families, schema_check, schema_queries
from jitkernels.attrs.schema.argument_binding import BoundCall
from jitkernels.attrs.schema.families import import_all, import_family
from jitkernels.attrs.schema.fields import (
    FLOATS,
    MAX_ARRAY_BYTES,
    NARROW,
    Field,
    FieldSignature,
    by_default,
    choice,
    custom,
    fields_of,
    in_dtype,
    in_words,
    power_of_two,
    real,
    stored,
    whole,
)
from jitkernels.attrs.schema.kernel_types import KernelType
from jitkernels.attrs.schema.signature import AnyArray, Argument, Signature
from jitkernels.core.fork_locks import build_lock
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import ArgumentTypeError, AttrError, RegistrationError

__all__ = [
    "FLOATS", "NARROW", "BoundCall", "Case", "KernelAttr", "Tolerance", "cases", "choice", "custom", "power_of_two",
    "real", "schemas", "stored", "sum_error", "whole",
]  # fmt: skip


class _Schemas(dict[KernelType, "type[KernelAttr]"]):
    """The schemas by kernel type. Iteration imports the modules of all families first."""

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
        """The schemas that are imported so far."""
        return list(super().values())

    @staticmethod
    def _complete() -> None:
        with build_lock:  # a fork waits for the imports
            import_all()


schemas = _Schemas()


@frozen_dataclass
class Tolerance:
    """The error bound of a result for any finite inputs.

    `ulp` units in the last place of the exact result, plus `terms` times the dtype's precision (from 1 to the next
    number) times the sum of the absolute terms of the result: `KernelAttr.absolute_terms` computes that from the data.
    Where such a sum overflows, there is no bound.

    Both refer to the dtype that a kernel computes in: results of bfloat16 are results of float32, rounded once more.
    """

    ulp: float
    terms: float = 0.0


def sum_error(count: int) -> float:
    """The `terms` of a blocked sum of `count` numbers: 16 additions per accumulator, and one per doubling of these.

    Every addition loses half a unit at most; one serial chain loses far more.
    """
    return (16.0 + math.log2(max(count, 1))) / 2


@frozen_dataclass
class Case:
    """A named attr of a sweep; cases tagged "ci" always run, those tagged "full" only in full runs."""

    name: str
    attr: "KernelAttr"
    tags: frozenset[str]


PackedInputs = Mapping[str, tuple[Hashable, Callable[[AnyArray], AnyArray]]]
"""By the names of inputs in another layout, a key of that layout, and the function that packs an input."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(choice, custom, real, stored, whole))
class KernelAttr:
    """Base of all attrs: an immutable value that names one kernel and every parameter it is specialised by.

    A subclass written ``class VMulAttr(VectorAttr, kernel_type="VMUL")`` becomes a schema of the registry and a frozen
    keyword-only dataclass. Raises AttrError when a field has a wrong type or value.

    arrays: the array arguments of the kernel, inputs first. floats: float fields that the C function takes after the
    integers (all int fields), as ``const double *``. options: parameters of the everyday function after its arrays:
    fields, ``axis``, or ``shape`` where no input determines the leading dimensions. beyond: an array, its most
    dimensions, and the schema that serves everyday calls with more. implemented_as: the class whose implementations
    serve this one, which is created on demand. streams: extents of attrs bound by memory bandwidth, where their number
    does not show it. singles: extents for which compiled references have specialised code where they are 1. derived:
    integers that `derive` computes, behind the fields in C. one_more: extents of size classes one above powers of two.
    """

    kernel_type: ClassVar[KernelType]
    arrays: ClassVar[tuple[Argument, ...]] = ()
    floats: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()
    beyond: ClassVar[tuple[str, int, str] | None] = None
    implemented_as: "ClassVar[type[KernelAttr] | None]" = None
    streams: ClassVar[tuple[tuple[int, ...], ...]] = ()
    singles: ClassVar[tuple[str, ...]] = ()
    derived: ClassVar[tuple[str, ...]] = ()
    one_more: ClassVar[tuple[str, ...]] = ()
    __signature__: ClassVar[Any]
    _required: ClassVar[frozenset[str]]
    _defaults: ClassVar[dict[str, Any]]
    _key: tuple[Any, ...]
    _hash: int
    _signature: Signature

    def __init_subclass__(cls, kernel_type: str | None = None) -> None:
        # `dataclass` would compile these methods from text, which is slow for so many classes: they are below.
        dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
        cls.__signature__ = FieldSignature()
        cls._required, cls._defaults = by_default(fields(cls))  # type: ignore[arg-type]  # it is a dataclass now
        if kernel_type is None:
            return
        if kernel_type != kernel_type.upper() or not kernel_type.isidentifier():
            raise RegistrationError(f"kernel type {kernel_type!r}: expected an upper-case identifier")
        schema_check.check_declaration(cls)
        if not cls.__module__.startswith(f"{families.PACKAGE}."):
            import_family(kernel_type)  # a schema of ours of that name takes precedence
        cls.kernel_type = KernelType.add(kernel_type)
        if schema_check.is_of_failed_import(known := schemas.setdefault(cls.kernel_type, cls), cls):
            schemas[cls.kernel_type] = cls
        elif known is not cls:
            raise RegistrationError(f"kernel type {kernel_type} already has the schema {known.__name__}")

    def __init__(self, *arguments: Any, **values: Any) -> None:
        if arguments or not self._required <= values.keys() <= self._required | self._defaults.keys():
            self._refuse(arguments, values)
        self.__dict__.update(self._defaults)
        self.__dict__.update(values)
        self.__post_init__()

    def _refuse(self, arguments: Sequence[Any], values: Mapping[str, Any]) -> NoReturn:
        """Raise ArgumentTypeError for missing, unknown or positional fields."""
        known = inspect.signature(type(self))
        listed = ", ".join(
            p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in known.parameters.values()
        )
        try:
            known.bind(*arguments, **values)
        except TypeError as error:
            raise ArgumentTypeError(f"{type(self).__name__}: expected {listed}, by name: {error}") from None
        raise AssertionError("fields that are neither missing nor unknown")

    def __post_init__(self) -> None:
        """Canonicalize all values and derive the signature and key. Raises AttrError for a wrong value."""
        values = self.__dict__
        known = self.known_fields()
        for name, field in known.items():
            values[name] = field.canonical(field.label, values[name])
        for name, field in known.items():
            if field.kind == "float":
                values[name] = in_dtype(field.label, values[name], values.get("dtype", "float64"))
        if self.derived:
            values.update(self.derive(values))
        arrays = [array for argument in self.arrays if (array := argument.array(values)) is not None]
        for array in arrays:
            if array.nbytes > MAX_ARRAY_BYTES:
                raise AttrError(f"{type(self).__name__}: array {array.name} would have {array.nbytes} bytes")
        integers = [(name, values[name]) for name, field in known.items() if field.is_integer]
        integers += [(name, values[name]) for name in self.derived]
        floats = [(name, values[name]) for name in self.floats]
        absent = {argument.name for argument in self.arrays} - {array.name for array in arrays}
        values["_signature"] = Signature(tuple(arrays), tuple(integers), tuple(floats), tuple(sorted(absent)))
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
            return self._key == other._key  # type: ignore[attr-defined,no-any-return]  # else AttributeError
        except AttributeError:
            return NotImplemented

    def __hash__(self) -> int:
        """Computed once, as every call looks an attr up; attrs of different classes have different hashes."""
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is rebuilt from its fields: hashes are valid in one process only."""
        return _rebuild, (type(self), self.fields())

    @classmethod
    def known_fields(cls) -> Mapping[str, Field]:
        """The checks and canonical forms of the fields, by name."""
        return _fields(cls)  # type: ignore[arg-type]  # a class is hashable

    @property
    def name(self) -> str:
        """The kernel's name in lower case, as in ``jk.vmul``."""
        return self.kernel_type.name.lower()

    def signature(self) -> Signature:
        """The arguments of the kernel for this attr."""
        return self._signature

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """The integers of `derived`, from the canonical values of the fields; in a trace, sizes are symbolic.

        Raises AttrError for fields that do not fit one another.
        """
        raise NotImplementedError

    def prepacked(
        self, constants: Mapping[str, AnyArray], *, winograd: bool,  # noqa: ARG002  # of schemas with a packed form
    ) -> "tuple[KernelAttr, PackedInputs] | None":  # fmt: skip
        """The attr of a schema of the same arguments that has some inputs in another layout.

        With it, by the names of these inputs, a key of the layout, and the function that packs an input. `constants`:
        the inputs that a compiled function has as constants. None without such a schema. With `winograd`, convolutions
        may have larger rounding errors, as `JitConfig` says.
        """
        return None

    def tolerance(self) -> Tolerance:
        """The error bound of every implementation."""
        raise NotImplementedError

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """For each output, elementwise, the sum of the absolute terms that rounding errors are relative to.

        `arrays` are the arguments of a call as float64, inout arrays as before the call. Only schemas whose `Tolerance`
        has `terms` need this. Infinite where an intermediate overflows, NaN where an infinite one does.
        """
        raise NotImplementedError

    def operations(self) -> float:
        """Arithmetic operations of one call; a transcendental function counts as 16."""
        raise NotImplementedError

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        """The attrs that tests, benchmarks and the tuner iterate over."""
        raise NotImplementedError

    @property
    def without_extents(self) -> tuple[Any, ...]:
        """The values of the fields that are not sizes."""
        return tuple([self.__dict__[name] for name in _non_size_names(type(self))])  # type: ignore[arg-type]  # a class is hashable

    def extents(self) -> dict[str, int]:
        """The fields that are sizes, by name."""
        values = self.fields()
        return {name: values[name] for name, field in self.known_fields().items() if field.is_size}

    def size_class(self) -> Self:
        """The attr that stands for this one in measurements: sizes rounded up to powers of two, default numbers.

        Every other field stays, and a float that is 0 stays 0, as that may be another computation.
        """
        changed = self.fields()
        for name, field in self.known_fields().items():
            if field.is_size:
                more = int(name in self.one_more and changed[name] > 0)
                changed[name] = int(min(power_of_two(changed[name] - more) + more, field.most))
            elif field.kind == "whole":
                changed[name] = getattr(type(self), name, field.least)
            elif field.kind == "float" and changed[name]:
                usual = getattr(type(self), name, 0.0) or (1.0 if field.most >= 1 else field.most / 2)
                changed[name] = in_dtype(field.label, usual, changed.get("dtype", "float64"))
        return self if changed == self.fields() else type(self)(**changed)

    @classmethod
    def call(cls, *arguments: Any, **named: Any) -> BoundCall:
        """Bind an everyday call to the kernel; its parameters are `parameters`.

        Raises ArgumentTypeError, ArgumentError or AttrError that names the argument, expected and got.
        """
        return argument_binding.bound(cls, arguments, named)

    @classmethod
    def parameters(cls) -> inspect.Signature:
        """Parameters of the everyday function without ``out``: arrays, then options."""
        return _parameters(cls)  # type: ignore[arg-type]  # a class is hashable

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        """Raise DataIndexError if indices in the arrays are out of bounds."""

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
        """The inverse of `to_json`; raises AttrError for invalid content."""
        known = cls.known_fields()
        if content.get("kernel") != cls.kernel_type.name or {*content} != {"kernel", *known}:
            raise AttrError(f"{cls.__name__}: expected kernel and fields {', '.join(known)}, got {content!r}")
        try:
            return cls(**{name: field.from_json(content[name]) for name, field in known.items()})
        except (KeyError, TypeError, ValueError) as error:
            raise AttrError(f"{cls.__name__}: cannot be read from {content!r}: {error}") from error


def _rebuild(attr_class: type[KernelAttr], fields: dict[str, Any]) -> KernelAttr:
    return attr_class(**fields)


@functools.cache
def _fields(attr_class: type[KernelAttr]) -> dict[str, Field]:
    return fields_of(attr_class)


@functools.cache
def _non_size_names(attr_class: type[KernelAttr]) -> tuple[str, ...]:
    return tuple(name for name, field in attr_class.known_fields().items() if not field.is_size)


@functools.cache
def _parameters(attr_class: type[KernelAttr]) -> inspect.Signature:
    return schema_queries.parameters(attr_class)


Attr = TypeVar("Attr", bound=KernelAttr)


def grid(schema: "type[Attr]", names: str, sizes: Iterable[Sequence[Any]], **choices: Sequence[Any]) -> list["Attr"]:
    """Attrs of all sizes of the fields `names`, for every combination of `choices` by field, the first the slowest."""
    fields, tuples = names.split(), list(sizes)
    return [
        schema(**dict(zip(fields, size, strict=True)), **dict(zip(choices, chosen, strict=True)))
        for chosen in itertools.product(*choices.values())
        for size in tuples
    ]


def cases(attrs: Iterable[KernelAttr], *, ci: Iterable[KernelAttr] = ()) -> list[Case]:
    """Cases named after their fields: all are tagged "full", those in `ci` also "ci"."""
    everywhere = dict.fromkeys(ci)
    ordered = dict.fromkeys([*everywhere, *attrs])
    tags = {True: frozenset({"ci", "full"}), False: frozenset({"full"})}
    return [Case(_case_name(attr), attr, tags[attr in everywhere]) for attr in ordered]


def _case_name(attr: KernelAttr) -> str:
    dtype = attr.fields().get("dtype", "")
    parts = [f"{key}{in_words(value, dtype)}" for key, value in attr.fields().items() if key != "dtype"]
    return "-".join([*parts, dtype.replace("float", "f")]) if dtype else "-".join(parts)
