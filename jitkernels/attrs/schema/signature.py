"""The arguments of a kernel as data, which launchers, tests, benchmarks and C headers read from a schema.

A schema declares each array once, as an `Argument` with a symbolic shape; an attr binds the symbols and has a
`Signature` of `Array`s with concrete extents.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from jitkernels.core import bfloat16, dtypes
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import ArgumentError, ArgumentTypeError, RegistrationError

AnyArray = np.ndarray[Any, np.dtype[Any]]


@frozen_dataclass
class DeclaredExtent:
    """One extent of a symbolic shape: ``factor * symbols + more``, or a number.

    `spread` (written ``*rows``) stands for any number of leading or trailing dimensions and their product; `optional`
    (written ``?n``) may be missing in an everyday call and is 1 then.
    """

    symbols: tuple[str, ...]
    factor: int = 1
    spread: bool = False
    optional: bool = False
    more: int = 0

    def value(self, fields: Mapping[str, Any]) -> int:
        """The extent for concrete values of the symbols."""
        number = self.factor
        for symbol in self.symbols:
            number *= int(fields[symbol])
        return number + self.more

    @property
    def is_plain(self) -> bool:
        """Whether it is a single symbol."""
        return len(self.symbols) == self.factor == 1 and self.more == 0

    def __str__(self) -> str:
        named = [str(self.factor)] if self.factor != 1 or not self.symbols else []
        product = "*".join([*named, *self.symbols])
        return f"{product}+{self.more}" if self.more else product


@frozen_dataclass
class Argument:
    """One array as a schema declares it, such as ``Argument("x", "in", "*rows n")``.

    shape: extents separated by blanks; each is a field of the schema, a product such as ``4*d``, one of these plus a
    number, such as ``tag+2``, or a number. The shape ``1`` is that of a scalar, for which everyday calls accept a
    Python number or an array of no dimensions. A leading ``*`` lets everyday calls pass any number of dimensions there
    (none counts as 1), before the others or, where it is not the first, after them (kernels take an array without it
    where it is 1); a leading ``?`` makes that extent optional. dtype: the attr's own if None; else a dtype or the name
    of a field that holds it. unless: a flag with which it is the attr's own all the same. domain: as in `Array`; its
    ends may name fields. when: a bool field without which the array is absent; that of an output is also an input's, or
    an option's, and the first output has none. transposed: a bool field that says that the last two extents are
    transposed in memory. read: a field that makes an output an input as well unless it is 0. along: an input to whose
    dimensions, but for the last, this array broadcasts in everyday calls that pass more than the shape has; those
    before the shape's are then flattened into its first. Where there are fewer they are 1. picks: an input whose rows
    these indices select, so that a kernel may receive those rows alone and their positions as indices; nothing else of
    the schema may determine how many rows that input has. moves: the only input, whose elements an output copies
    unchanged: at the same index along extents of the same names, broadcast along others. pitch: the derived integer
    that says how many elements an output's runs of the last extent lie apart. It is that extent, except where a
    compiled function lets the kernel write some columns of a larger array: implementations declare that they can.
    """

    name: str
    role: Literal["in", "out"]
    shape: str
    dtype: str | None = None
    in_place: bool = False
    domain: tuple[float | str, float | str] = (-2.0, 2.0)
    when: str | None = None
    transposed: str | None = None
    read: str | None = None
    picks: str | None = None
    unless: str | None = None
    along: str | None = None
    moves: str | None = None
    pitch: str | None = None

    @unlocked_cached_property
    def extents(self) -> tuple[DeclaredExtent, ...]:
        """The shape, parsed. Raises RegistrationError for invalid syntax."""
        return tuple(_extent(self, word) for word in self.shape.split())

    @unlocked_cached_property
    def fixed(self) -> tuple[DeclaredExtent, ...]:
        """The extents without leading and trailing dimensions, whose number varies."""
        return tuple(extent for extent in self.extents if not extent.spread)

    @unlocked_cached_property
    def spreads(self) -> bool:
        """Whether it may have leading dimensions."""
        return bool(self.extents) and self.extents[0].spread

    @unlocked_cached_property
    def trailing(self) -> str | None:
        """The symbol of the trailing dimensions, or None."""
        symbols = [extent.symbols[0] for extent in self.extents[1:] if extent.spread]
        return symbols[0] if symbols else None

    @unlocked_cached_property
    def _sizes(self) -> tuple[str | DeclaredExtent, ...]:
        """The extents; single symbols by name, as every attr evaluates them."""
        return tuple(e.symbols[0] if e.is_plain else e for e in self.extents)

    @unlocked_cached_property
    def is_number(self) -> bool:
        """Whether it is a scalar: one element whatever the fields are."""
        return self.extents == (DeclaredExtent(()),)

    @property
    def symbols(self) -> str:
        """The shape as documentation prints it, such as ``[rows, n]``."""
        return f"[{', '.join(map(str, self.extents))}]"

    def dtype_in(self, fields: Mapping[str, Any]) -> str:
        """Its dtype for concrete values of all fields."""
        if self.dtype is None or (self.unless is not None and fields[self.unless]):
            return str(fields["dtype"])
        return str(fields.get(self.dtype, self.dtype))

    def array(self, fields: Mapping[str, Any]) -> "Array | None":
        """The array for concrete values of all fields, or None where it is absent."""
        if self.when is not None and not fields[self.when]:
            return None
        shape = [fields[size] if isinstance(size, str) else size.value(fields) for size in self._sizes]
        alone = self.trailing is not None and shape[-1] == 1
        if alone:
            shape.pop()
        if self.transposed is not None and fields[self.transposed]:
            shape[-2:] = reversed(shape[-2:])
        role = "inout" if self.read is not None and fields[self.read] else self.role
        low, high = self.domain
        domain = (
            float(fields[low]) if isinstance(low, str) else low,
            float(fields[high]) if isinstance(high, str) else high,
        )
        dtype = self.dtype_in(fields)
        if dtype.startswith("uint") and domain[0] < 0:
            domain = (0.0, domain[1] - domain[0])
        return Array(self.name, role, tuple(shape), dtype, self.in_place, domain, alone)


def _extent(argument: Argument, word: str) -> DeclaredExtent:
    spread, optional = word.startswith("*"), word.startswith("?")
    product, _, added = word.lstrip("*?").partition("+")
    more = int(added) if added.isdecimal() else 0
    parts = product.split("*")
    factor = math.prod(int(part) for part in parts if part.isdecimal())
    symbols = tuple(part for part in parts if not part.isdecimal())
    is_number = word.isdecimal() and int(word) > 0
    if (
        not (symbols or is_number)
        or not all(symbol.isidentifier() for symbol in symbols)
        or (str(more) if more else "") != added
    ):
        raise RegistrationError(
            f"array {argument.name}: shape {argument.shape!r}: expected names of fields, products of them "
            f"with numbers, or numbers, got {word!r}"
        )
    return DeclaredExtent(symbols, factor, spread, optional, more)


@frozen_dataclass
class Array:
    """One array argument, C-contiguous and aligned.

    `in_place` on an input and an output means that both may alias exactly. `domain` is the range of random inputs in
    tests, benchmarks and the tuner; for integers the upper end is excluded. `alone`: there are no trailing dimensions,
    where the schema has some.
    """

    name: str
    role: Literal["in", "out", "inout"]
    shape: tuple[int, ...]
    dtype: str
    in_place: bool = False
    domain: tuple[float, float] = (-2.0, 2.0)
    alone: bool = False

    def as_declared(self, array: AnyArray) -> AnyArray:
        """The array with all dimensions that the schema declares, as references, oracles and tolerances expect them."""
        return array[..., np.newaxis] if self.alone else array

    def as_given(self, array: AnyArray) -> AnyArray:
        """The inverse of `as_declared`: the array in the caller's shape."""
        return array.reshape(self.shape) if self.alone else array

    @property
    def output(self) -> bool:
        return self.role != "in"

    @property
    def c_type(self) -> str:
        """The C type of the pointer; ``restrict`` unless another argument may alias it."""
        return f"{dtypes.named(self.dtype).c}*{'' if self.in_place else ' restrict'}"

    @property
    def nbytes(self) -> int:
        size = dtypes.named(self.dtype).size
        for extent in self.shape:
            size *= extent
        return size

    def sample(self, generator: "np.random.Generator") -> AnyArray:
        """An array of random numbers from the domain; outputs are filled with NaN to reveal what was not written."""
        if self.role == "out":
            return self.stored(np.full(self.shape, np.nan if self.is_float else 77))
        if not self.is_float:
            low, high = int(self.domain[0]), int(self.domain[1])
            return generator.integers(low, max(high, low + 1), self.shape, self.dtype)
        return self.stored(generator.uniform(*self.domain, self.shape))

    @property
    def is_float(self) -> bool:
        return dtypes.named(self.dtype).is_float

    @property
    def numpy(self) -> "np.dtype[Any]":
        """The dtype of its arrays; for bfloat16 that of the bits."""
        return dtypes.named(self.dtype).numpy

    def takes(self, dtype: "np.dtype[Any]") -> bool:
        """Whether arrays of `dtype` can be passed; another package's bfloat16 has the same bits as ours."""
        return dtype == self.numpy or (self.dtype == bfloat16.BFLOAT16_NAME and bfloat16.is_foreign(dtype))

    def numbers(self, array: AnyArray) -> AnyArray:
        """The values of an array, bfloat16 decoded to float32."""
        return bfloat16.numbers(array) if self.dtype == bfloat16.BFLOAT16_NAME else array

    def stored(self, values: Any) -> AnyArray:
        """An array of this dtype with the values rounded to nearest."""
        return (
            bfloat16.stored(values) if self.dtype == bfloat16.BFLOAT16_NAME else np.asarray(values).astype(self.dtype)
        )

    def describe(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@frozen_dataclass
class Signature:
    """All arguments of a kernel: arrays (inputs, then outputs), then integers, then floats.

    Python callers pass the arrays only. The C function takes the arrays, the integers as ``int64_t`` and each float as
    ``const double *``. `absent`: names of arrays that the schema declares and this attr lacks.
    """

    arrays: tuple[Array, ...]
    integers: tuple[tuple[str, int], ...] = ()
    floats: tuple[tuple[str, float], ...] = ()
    absent: tuple[str, ...] = ()

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

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the C arguments, in order, then of absent arrays."""
        return (*[array.name for array in self.arrays], *dict([*self.integers, *self.floats]), *self.absent)

    def as_declared(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        """The arrays of a call with all dimensions that the schema declares."""
        return [parameter.as_declared(array) for parameter, array in zip(self.arrays, arrays, strict=True)]

    def outputs_as_given(self, results: Sequence[AnyArray]) -> list[AnyArray]:
        """One array per output, of declared dimensions, in the caller's shapes."""
        return [parameter.as_given(result) for parameter, result in zip(self.outputs, results, strict=True)]

    def through_numbers(self, function: Callable[..., None], arrays: Sequence[AnyArray]) -> None:
        """Call a function of NumPy arrays; it sees bfloat16, which NumPy lacks, as float32."""
        narrow = [array.dtype == bfloat16.BFLOAT16_NAME for array in self.arrays]
        values = [p.numbers(a) for p, a in zip(self.arrays, arrays, strict=True)] if any(narrow) else arrays
        function(*self.as_declared(values))
        for parameter, is_narrow, array, numbers in zip(self.arrays, narrow, arrays, values, strict=True):
            if is_narrow and parameter.output:
                array.view(np.uint16)[...] = bfloat16.stored(numbers)

    def index(self, name: str) -> int:
        """Position of an argument in the C function."""
        return self.names.index(name)

    def sample(self, seed: int = 0) -> list[AnyArray]:
        """Arrays for one call, the same for the same seed."""
        generator = np.random.default_rng(seed)
        return [array.sample(generator) for array in self.arrays]

    def check(self, kernel: str, arguments: Sequence[object]) -> None:
        """Raise for the first argument that does not match, naming it, expected and got.

        Raises ArgumentTypeError for a wrong count, type or dtype, ArgumentError for a wrong shape, layout or overlap.
        """
        names = ", ".join(array.name for array in self.arrays)
        if len(arguments) != len(self.arrays):
            raise ArgumentTypeError(f"{kernel}({names}): expected {len(self.arrays)} arrays, got {len(arguments)}")
        for array, value in zip(self.arrays, arguments, strict=True):
            _check_array(kernel, array, value)
        self._check_overlap(kernel, [value for value in arguments if isinstance(value, np.ndarray)])

    def _check_overlap(self, kernel: str, values: Sequence[AnyArray]) -> None:
        for i, (array, value) in enumerate(zip(self.arrays, values, strict=True)):
            for j, (other, other_value) in enumerate(zip(self.arrays, values, strict=True)):
                if i == j or not array.output or not np.may_share_memory(value, other_value):
                    continue
                may_be_same = array.in_place and other.in_place and not other.output
                same = may_be_same and value.ctypes.data == other_value.ctypes.data
                if not same and value.size and other_value.size:
                    allowed = "may only be the same array" if may_be_same else "must not overlap"
                    raise ArgumentError(f"{kernel}: {array.name} and {other.name} {allowed}, but share memory")


def _check_array(kernel: str, array: Array, value: object) -> None:
    if type(value) is np.ndarray and value.shape == array.shape and array.takes(value.dtype):
        flags = value.flags
        if flags.c_contiguous and flags.aligned and (flags.writeable or not array.output):
            return
    label = f"{kernel}: {array.name}: expected {array.describe()}"
    if not isinstance(value, np.ndarray) or hasattr(value, "mask"):
        raise ArgumentTypeError(f"{label}, got {type(value).__name__}")
    if not array.takes(value.dtype):
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
