"""What every row has: the base class of attrs, and the small types that rows answer with."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError, AttrError, RegistrationError
from jitkernels.kernel_types import KernelType
from jitkernels.signature import AnyArray, Signature

FLOATS = ("float32", "float64")
MOST_BYTES = 1 << 62
rows: dict[KernelType, type["KernelAttr"]] = {}


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from the true one: `ulp` units in the last place plus `absolute`."""

    ulp: float
    absolute: float = 0.0


@dataclass(frozen=True)
class Case:
    """A named attr of a sweep; "ci" cases run everywhere, "full" ones where there is time."""

    name: str
    attr: "KernelAttr"
    tags: frozenset[str]


@dataclass(frozen=True)
class Call:
    """An everyday call in terms of a kernel: its attr, its input arrays, and what the caller gets back.

    `shapes` are the shapes of the results as the caller sees them, in the memory order of the kernel's
    outputs. `finish`, if given, turns a result of that shape into the caller's (a view with axes moved).
    """

    attr: "KernelAttr"
    inputs: Sequence[AnyArray]
    shapes: Sequence[tuple[int, ...]]
    finish: Callable[[AnyArray], AnyArray] | None = None


def choice(*values: str, default: str) -> Any:
    """A field that takes one of these strings."""
    return dataclasses.field(default=default, metadata={"values": values})


@dataclass_transform(frozen_default=True, kw_only_default=True)
class KernelAttr:
    """Base of all attrs: a frozen value that names one kernel and all that it is specialised by.

    A subclass written ``class VMulAttr(VectorAttr, kernel_type="VMUL")`` becomes a row of the registry and a
    frozen keyword-only dataclass. Raises AttrError when a field has a wrong type or value.
    """

    kernel_type: ClassVar[KernelType]

    def __init_subclass__(cls, kernel_type: str | None = None) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        if kernel_type is None:
            return
        if kernel_type != kernel_type.upper() or not kernel_type.isidentifier():
            raise RegistrationError(f"kernel type {kernel_type!r}: expected an upper-case identifier")
        cls.kernel_type = KernelType.add(kernel_type)
        if rows.setdefault(cls.kernel_type, cls) is not cls:
            raise RegistrationError(f"kernel type {kernel_type} already has the row {rows[cls.kernel_type].__name__}")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            value = _checked(f"{type(self).__name__}: {field.name}", field, getattr(self, field.name))
            object.__setattr__(self, field.name, value)
        for array in self.signature().arrays:
            if array.nbytes > MOST_BYTES:
                raise AttrError(f"{type(self).__name__}: array {array.name} would have {array.nbytes} bytes")

    @property
    def name(self) -> str:
        """The kernel's name in lower case, as in ``jk.vmul``."""
        return self.kernel_type.name.lower()

    def signature(self) -> Signature:
        """The arguments of the kernel for this attr."""
        raise NotImplementedError

    def tolerance(self) -> Tolerance:
        """How far from the true result an implementation may be, for inputs from the domain."""
        raise NotImplementedError

    def operations(self) -> float:
        """Arithmetic operations of one call, a transcendental function counted as 16."""
        raise NotImplementedError

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        """The attrs that tests, benchmarks and the tuner go through."""
        raise NotImplementedError

    def tuning_class(self) -> Self:
        """The attr that is measured on behalf of this one."""
        return self

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        """Raise DataIndexError if the values in the arrays point outside others."""

    def text(self) -> str:
        """Fields as ``n=1024, dtype=float32``."""
        return ", ".join(f"{key}={value}" for key, value in self.fields().items())

    def fields(self) -> dict[str, Any]:
        """Fields by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]


def _checked(label: str, field: "dataclasses.Field[Any]", value: object) -> object:
    """A field's value in its canonical type, or AttrError."""
    if field.name == "dtype":
        return _dtype(label, value)
    if values := field.metadata.get("values"):
        if value not in values:
            raise AttrError(f"{label}: expected one of {', '.join(values)}, got {value!r}")
        return value
    if field.type in (bool, "bool"):
        if not isinstance(value, bool | np.bool_):
            raise AttrError(f"{label}: expected a bool, got {value!r}")
        return bool(value)
    if field.type in (float, "float"):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not np.isfinite(value):
            raise AttrError(f"{label}: expected a finite number, got {value!r}")
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise AttrError(f"{label}: expected an int, got {value!r}")
    if value < 0:
        raise AttrError(f"{label}: expected 0 or more, got {value}")
    return int(value)


def _dtype(label: str, value: object) -> str:
    try:
        name = np.dtype(value).name  # type: ignore[call-overload]
    except TypeError:
        name = str(value)
    if name not in FLOATS:
        raise AttrError(f"{label}: expected one of {', '.join(FLOATS)}, got {value!r}")
    return str(name)


def float_arrays(kernel: str, **values: object) -> list[AnyArray]:
    """Array-likes as aligned C-contiguous arrays of one dtype: float32 if it holds them all, else float64.

    Integers and booleans count as float64, float16 as float32, Python numbers take the arrays' dtype.
    Raises ArgumentTypeError for anything that is not real numbers.
    """
    arrays = {}
    for name, value in values.items():
        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise ArgumentTypeError(f"{kernel}: {name}: expected real numbers, got dtype {array.dtype}")
        arrays[name] = array
    weak = [v if isinstance(v, int | float) else arrays[name] for name, v in values.items()]
    common = np.result_type(*weak)
    dtype = np.float32 if common in (np.dtype(np.float16), np.dtype(np.float32)) else np.float64
    return [np.require(array, dtype, ["C", "A"]) for array in arrays.values()]


def axis_last(kernel: str, array: AnyArray, axis: object) -> tuple[AnyArray, Callable[[AnyArray], AnyArray] | None]:
    """A view with one axis moved to the end, and the function that moves it back (None if it was there)."""
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise ArgumentTypeError(f"{kernel}: axis: expected an int, got {axis!r}")
    if not -array.ndim <= axis < array.ndim:
        raise ArgumentError(f"{kernel}: axis: expected -{array.ndim} to {array.ndim - 1}, got {axis}")
    if axis in (-1, array.ndim - 1):
        return array, None
    return np.moveaxis(array, int(axis), -1), lambda result: np.moveaxis(result, -1, int(axis))


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
    parts = [f"{key}{value}" for key, value in attr.fields().items() if key != "dtype"]
    return "-".join([*parts, attr.fields()["dtype"].replace("float", "f")])
