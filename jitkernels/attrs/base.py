"""What every row has: the base class of attrs, and the small types that rows answer with."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError, AttrError, RegistrationError
from jitkernels.kernel_types import KernelType
from jitkernels.signature import AnyArray, Signature

FLOATS = ("float32", "float64")
_NAMES = {np.dtype(name): name for name in FLOATS}
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
            raise RegistrationError(
                f"kernel type {kernel_type} already has the row {rows[cls.kernel_type].__name__}"
            )

    def __post_init__(self) -> None:
        values = self.__dict__
        for name, checked in _checks(type(self)):  # type: ignore[arg-type]  # a class is hashable
            values[name] = checked(values[name])
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

    @classmethod
    def call(cls, *arguments: Any, **named: Any) -> Call:
        """An everyday call: its parameters, in each row by name, are those of the everyday function.

        Array parameters come first, optional ones with the default None; then others with their defaults.
        """
        raise NotImplementedError

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        """Raise DataIndexError if the values in the arrays point outside others."""

    def text(self) -> str:
        """Fields as ``n=1024, dtype=float32``."""
        return ", ".join(f"{key}={value}" for key, value in self.fields().items())

    def fields(self) -> dict[str, Any]:
        """Fields by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]


Check = Callable[[object], object]


@functools.cache
def _checks(attr_class: type[KernelAttr]) -> tuple[tuple[str, Check], ...]:
    """For each field the function that gives its value in canonical type or raises AttrError."""
    by_type: dict[object, Callable[[str, Any], object]] = {
        "bool": _bool,
        bool: _bool,
        "float": _float,
        float: _float,
    }
    found = []
    for field in dataclasses.fields(attr_class):  # type: ignore[arg-type]  # subclasses are dataclasses
        label = f"{attr_class.__name__}: {field.name}"
        check = _dtype if field.name == "dtype" else by_type.get(field.type, _extent)
        if values := field.metadata.get("values"):
            check = functools.partial(_one_of, values)
        found.append((field.name, functools.partial(check, label)))
    return tuple(found)


def _one_of(values: tuple[str, ...], label: str, value: object) -> object:
    if not isinstance(value, str) or value not in values:
        raise AttrError(f"{label}: expected one of {', '.join(values)}, got {value!r}")
    return value


def _bool(label: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise AttrError(f"{label}: expected a bool, got {value!r}")
    return bool(value)


def _float(label: str, value: Any) -> float:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        number = float(value) if real else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise AttrError(f"{label}: expected a finite number, got {value!r}")
    return number


def _extent(label: str, value: Any) -> int:
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
        raise AttrError(f"{label}: expected an int, got {value!r}")
    if value < 0:
        raise AttrError(f"{label}: expected 0 or more, got {value}")
    if value > MOST_BYTES:
        raise AttrError(f"{label}: expected at most {MOST_BYTES}, got {value}")
    return int(value)


def _dtype(label: str, value: object) -> str:
    if type(value) is str and value in FLOATS:
        return value
    try:
        dtype = np.dtype(value)  # type: ignore[call-overload]
        name = dtype.name if dtype.isnative and value is not None else dtype.str  # None would mean float64
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
        if hasattr(value, "mask"):
            raise ArgumentTypeError(f"{kernel}: {name}: expected an array without a mask, got a masked array")
        array = np.asarray(value)
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise ArgumentTypeError(f"{kernel}: {name}: expected real numbers, got dtype {array.dtype}")
        arrays[name] = array
    first, *others = arrays.values()
    if all(array.dtype is first.dtype for array in others) and first.dtype in _NAMES:
        return [a if _plain(a) else np.require(a, None, ["C", "A"]) for a in arrays.values()]
    weak = [v if isinstance(v, int | float) else arrays[name] for name, v in values.items()]
    common = np.result_type(*weak)
    dtype = np.float32 if common in (np.dtype(np.float16), np.dtype(np.float32)) else np.float64
    return [np.require(array, dtype, ["C", "A"]) for array in arrays.values()]


def dtype_name(array: AnyArray) -> str:
    """The dtype field for an array that `float_arrays` returned; ``dtype.name`` takes 3 us to spell it."""
    return _NAMES[array.dtype]


def _plain(array: AnyArray) -> bool:
    return array.flags.c_contiguous and array.flags.aligned and type(array) is np.ndarray


def axis_last(
    kernel: str, array: AnyArray, axis: object
) -> tuple[AnyArray, Callable[[AnyArray], AnyArray] | None]:
    """A view with one axis moved to the end, and the function that moves it back (None if it was there)."""
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise ArgumentTypeError(f"{kernel}: axis: expected an int, got {axis!r}")
    if array.ndim == 0:
        raise ArgumentError(f"{kernel}: x: expected at least 1 dimension, got 0")
    if not -array.ndim <= axis < array.ndim:
        raise ArgumentError(f"{kernel}: axis: expected -{array.ndim} to {array.ndim - 1}, got {axis}")
    if axis in (-1, array.ndim - 1):
        return array, None
    return np.moveaxis(array, int(axis), -1), lambda result: np.moveaxis(result, -1, int(axis))


def power_of_two(extent: int) -> int:
    """The next power of two, 1 for 0."""
    return 1 << max(extent - 1, 0).bit_length()


def size_class(extent: int) -> int:
    """The extent itself up to 64, where tails decide what is fastest; beyond that the next power of two."""
    return extent if extent <= 64 else power_of_two(extent)


def cases(attrs: Iterable[KernelAttr], *, ci: Iterable[KernelAttr] = ()) -> list[Case]:
    """Cases named after their fields: all tagged "full", those also in `ci` tagged "ci" too."""
    everywhere = dict.fromkeys(ci)
    ordered = dict.fromkeys([*everywhere, *attrs])
    tags = {True: frozenset({"ci", "full"}), False: frozenset({"full"})}
    return [Case(_case_name(attr), attr, tags[attr in everywhere]) for attr in ordered]


def _case_name(attr: KernelAttr) -> str:
    parts = [f"{key}{value}" for key, value in attr.fields().items() if key != "dtype"]
    return "-".join([*parts, attr.fields()["dtype"].replace("float", "f")])
