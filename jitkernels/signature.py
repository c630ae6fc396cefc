"""The arguments of a kernel as data: what every launcher, test, benchmark and C header reads from a row.

A row declares each array once, as an `Argument` with a symbolic shape; an attr binds the symbols and gives a
`Signature` of `Array`s with numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jitkernels import dtypes
from jitkernels.errors import ArgumentError, ArgumentTypeError, RegistrationError
from jitkernels.kept import kept_property

AnyArray = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Extent:
    """One extent of a symbolic shape: a number times symbols, and a number more.

    `spread` (written ``*rows``) stands for any number of leading dimensions and their product; `optional`
    (written ``?n``) may be missing in an everyday call and is 1 then.
    """

    symbols: tuple[str, ...]
    factor: int = 1
    spread: bool = False
    optional: bool = False
    more: int = 0

    def value(self, fields: Mapping[str, Any]) -> int:
        """The number for given values of the symbols."""
        number = self.factor
        for symbol in self.symbols:
            number *= int(fields[symbol])
        return number + self.more

    @property
    def is_plain(self) -> bool:
        """Whether it is a symbol alone."""
        return len(self.symbols) == self.factor == 1 and self.more == 0

    def __str__(self) -> str:
        product = "*".join([*([str(self.factor)] if self.factor != 1 else []), *self.symbols])
        return f"{product}+{self.more}" if self.more else product


@dataclass(frozen=True)
class Argument:
    """One array as a row declares it, such as ``Argument("x", "in", "*rows n")``.

    shape: extents separated by blanks; each is a field of the row, a product such as ``4*d``, or that and a number
    more, such as ``tag+2``. A leading ``*`` lets everyday calls give any number of dimensions there (none counts as
    1); a leading ``?`` lets them leave that one out. dtype: the attr's own if None. domain: as in `Array`; its ends may
    name fields.
    when: a bool field without which the array is not there. turned: a bool field that says that the last two
    extents are exchanged in memory. read: a field that makes an output an input as well unless it is 0.
    picks: an input of which these numbers name rows, so that a kernel may get those rows alone and their places
    as numbers; nothing else of the row may tell how many rows that input has.
    """

    name: str
    role: Literal["in", "out"]
    shape: str
    dtype: str | None = None
    in_place: bool = False
    domain: tuple[float | str, float | str] = (-2.0, 2.0)
    when: str | None = None
    turned: str | None = None
    read: str | None = None
    picks: str | None = None

    @kept_property
    def extents(self) -> tuple[Extent, ...]:
        """The shape, parsed. Raises RegistrationError if it is not one."""
        return tuple(_extent(self, word) for word in self.shape.split())

    @kept_property
    def fixed(self) -> tuple[Extent, ...]:
        """The extents but for the leading ones, of which there may be any number."""
        return tuple(extent for extent in self.extents if not extent.spread)

    @kept_property
    def spreads(self) -> bool:
        """Whether there may be leading dimensions."""
        return len(self.fixed) < len(self.extents)

    @kept_property
    def _sizes(self) -> tuple[str | Extent, ...]:
        """The extents; those that are a symbol alone by its name, as every attr asks for their values."""
        return tuple(e.symbols[0] if e.is_plain else e for e in self.extents)

    @property
    def symbols(self) -> str:
        """The shape as documentation prints it, such as ``[rows, n]``."""
        return f"[{', '.join(map(str, self.extents))}]"

    def array(self, fields: Mapping[str, Any]) -> "Array | None":
        """The array for given values of all fields, or None where it is not there."""
        if self.when is not None and not fields[self.when]:
            return None
        shape = [fields[size] if isinstance(size, str) else size.value(fields) for size in self._sizes]
        if self.turned is not None and fields[self.turned]:
            shape[-2:] = reversed(shape[-2:])
        role = "inout" if self.read is not None and fields[self.read] else self.role
        low, high = self.domain
        domain = (
            float(fields[low]) if isinstance(low, str) else low,
            float(fields[high]) if isinstance(high, str) else high,
        )
        return Array(self.name, role, tuple(shape), self.dtype or fields["dtype"], self.in_place, domain)


def _extent(argument: Argument, word: str) -> Extent:
    spread, optional = word.startswith("*"), word.startswith("?")
    product, _, added = word.lstrip("*?").partition("+")
    more = int(added) if added.isdecimal() else 0
    parts = product.split("*")
    factor = math.prod(int(part) for part in parts if part.isdecimal())
    symbols = tuple(part for part in parts if not part.isdecimal())
    if (
        not symbols
        or not all(symbol.isidentifier() for symbol in symbols)
        or (str(more) if more else "") != added
    ):
        raise RegistrationError(
            f"array {argument.name}: shape {argument.shape!r}: expected names of fields or products of them "
            f"with numbers, got {word!r}"
        )
    return Extent(symbols, factor, spread, optional, more)


@dataclass(frozen=True)
class Array:
    """One array argument, C-contiguous and aligned.

    `in_place` on an input and an output means that both may be the very same memory. `domain` is the range
    that inputs are drawn from when a test, a benchmark or the tuner needs some; for integers the upper end
    is excluded.
    """

    name: str
    role: Literal["in", "out", "inout"]
    shape: tuple[int, ...]
    dtype: str
    in_place: bool = False
    domain: tuple[float, float] = (-2.0, 2.0)

    @property
    def output(self) -> bool:
        return self.role != "in"

    @property
    def c_type(self) -> str:
        """The C type of the pointer; ``restrict`` unless another argument may be the same memory."""
        return f"{dtypes.named(self.dtype).c}*{'' if self.in_place else ' restrict'}"

    @property
    def nbytes(self) -> int:
        size = np.dtype(self.dtype).itemsize
        for extent in self.shape:
            size *= extent
        return size

    def sample(self, generator: "np.random.Generator") -> AnyArray:
        """An array drawn from the domain; outputs are filled with NaN to show what was not written."""
        if self.role == "out":
            return np.full(self.shape, np.nan if self.dtype.startswith("float") else -1, self.dtype)
        if self.dtype.startswith("int"):
            low, high = int(self.domain[0]), int(self.domain[1])
            return generator.integers(low, max(high, low + 1), self.shape, self.dtype)
        return generator.uniform(*self.domain, self.shape).astype(self.dtype)

    def describe(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Signature:
    """All arguments of a kernel: arrays (inputs, then outputs), then integers, then floats.

    Python callers pass the arrays alone. The C function takes the arrays, the integers as ``int64_t`` and
    each float as ``const double *``.
    """

    arrays: tuple[Array, ...]
    integers: tuple[tuple[str, int], ...] = ()
    floats: tuple[tuple[str, float], ...] = ()

    @property
    def inputs(self) -> tuple[Array, ...]:
        return tuple(array for array in self.arrays if array.role == "in")

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(array for array in self.arrays if array.output)

    @property
    def c_arguments(self) -> tuple[str, ...]:
        """C types of the arguments, in order."""
        arrays = [array.c_type for array in self.arrays]
        return (*arrays, *["int64"] * len(self.integers), *["double* restrict"] * len(self.floats))

    def index(self, name: str) -> int:
        """Position of an argument in the C function."""
        names = (
            [array.name for array in self.arrays]
            + [n for n, _ in self.integers]
            + [n for n, _ in self.floats]
        )
        return names.index(name)

    def sample(self, seed: int = 0) -> list[AnyArray]:
        """Arrays for one call, the same for the same seed."""
        generator = np.random.default_rng(seed)
        return [array.sample(generator) for array in self.arrays]

    def check(self, kernel: str, arguments: Sequence[object]) -> None:
        """Raise for the first argument that does not fit, naming it, what was expected and what came.

        Raises ArgumentTypeError for a wrong count, type or dtype, ArgumentError for a wrong shape, layout
        or overlap.
        """
        names = ", ".join(array.name for array in self.arrays)
        if len(arguments) != len(self.arrays):
            raise ArgumentTypeError(
                f"{kernel}({names}): expected {len(self.arrays)} arrays, got {len(arguments)}"
            )
        for array, value in zip(self.arrays, arguments, strict=True):
            _check_array(kernel, array, value)
        self._check_overlap(kernel, [value for value in arguments if isinstance(value, np.ndarray)])

    def _check_overlap(self, kernel: str, values: Sequence[AnyArray]) -> None:
        for i, (array, value) in enumerate(zip(self.arrays, values, strict=True)):
            for j, (other, against) in enumerate(zip(self.arrays, values, strict=True)):
                if i == j or not array.output or not np.may_share_memory(value, against):
                    continue
                same = value.ctypes.data == against.ctypes.data and array.in_place and other.in_place
                if not same and value.size and against.size:
                    allowed = (
                        "may only be the same array"
                        if array.in_place and other.in_place
                        else "must not overlap"
                    )
                    raise ArgumentError(
                        f"{kernel}: {array.name} and {other.name} {allowed}, but share memory"
                    )


def _check_array(kernel: str, array: Array, value: object) -> None:
    if type(value) is np.ndarray and value.shape == array.shape and value.dtype == np.dtype(array.dtype):
        flags = value.flags
        if flags.c_contiguous and flags.aligned and (flags.writeable or not array.output):
            return
    label = f"{kernel}: {array.name}: expected {array.describe()}"
    if not isinstance(value, np.ndarray) or hasattr(value, "mask"):
        raise ArgumentTypeError(f"{label}, got {type(value).__name__}")
    if value.dtype != np.dtype(array.dtype):
        raise ArgumentTypeError(f"{label}, got dtype {value.dtype} ({value.dtype.str})")
    if value.ndim != len(array.shape):
        raise ArgumentError(f"{label}, got {value.ndim} dimensions")
    if value.shape != array.shape:
        raise ArgumentError(f"{label}, got shape {value.shape}")
    if array.output and not value.flags.writeable:
        raise ArgumentError(f"{label}, writeable, got a read-only array")
    if not value.flags.c_contiguous:
        raise ArgumentError(f"{label}, C-contiguous, got strides {value.strides}")
    if not value.flags.aligned:
        raise ArgumentError(f"{label}, aligned, got the address {value.ctypes.data:#x}")
