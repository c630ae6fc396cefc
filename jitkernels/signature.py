"""The arguments of a kernel as data: what every launcher, test, benchmark and C header reads from a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError

AnyArray = np.ndarray[Any, np.dtype[Any]]
C_TYPES = {"float32": "float", "float64": "double", "int64": "int64"}


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
        return f"{C_TYPES[self.dtype]}*"

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
        return (*arrays, *["int64"] * len(self.integers), *["double*"] * len(self.floats))

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
