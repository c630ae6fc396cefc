"""Fourier transforms of complex and real arrays along any axes, as in `numpy.fft`, by kernels of pairs of numbers.

Arguments, results and errors are NumPy's. Half and extended precision, and what NumPy refuses, go to NumPy.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.dispatch.operators import everyday

SINGLE = frozenset("fF")
"""Type characters of dtypes whose transforms are of single precision."""
DOUBLE = frozenset("?bBhHiIlLqQdD")
MIN_COLUMNS = 8
"""With fewer numbers behind an axis it is moved to the end: vectors would hardly be filled."""


def scale_of(norm: str | None, n: Any, *, inverse: bool) -> Any:
    """The factor of a transform of n elements. Raises ValueError as NumPy does."""
    if norm == "ortho":
        return n**-0.5
    if norm not in (None, "backward", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return 1.0 / n if (norm == "forward") != inverse else 1.0


SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def swapped(norm: str | None) -> str:
    """The norm of the other direction. Raises ValueError as NumPy does."""
    if norm not in SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return SWAPPED[norm]


class FourierTransforms:
    """The functions of `numpy.fft`, for arrays of NumPy; for others, a subclass says what pairs are."""

    def pairs(self, a: Any, *, single: bool) -> Any:
        """The parts of complex numbers behind each other."""
        dtype, part = (np.complex64, np.float32) if single else (np.complex128, np.float64)
        return np.ascontiguousarray(a, dtype).view(part).reshape(*a.shape, 2)

    def numbers(self, pairs: Any) -> Any:
        """The complex numbers of pairs."""
        return pairs.view(np.complex64 if pairs.itemsize == 4 else np.complex128)[..., 0]

    def kernel(self, name: str) -> Callable[..., Any]:
        """The operator of that name."""
        function: Callable[..., Any] = everyday(name)
        return function

    def zeros(self, a: Any, shape: Sequence[Any]) -> Any:
        """Zeros of an array's dtype."""
        return np.zeros(shape, a.dtype)

    def resized(self, a: Any, n: Any, axis: int) -> Any:
        """The first n elements along an axis, zeros behind them where there are fewer."""
        size = a.shape[axis]
        if size == n:
            return a
        if n < size:
            return a[(slice(None),) * axis + (slice(0, n),)]
        return np.concatenate([a, self.zeros(a, (*a.shape[:axis], n - size, *a.shape[axis + 1 :]))], axis)

    def length(self, n: Any) -> Any:
        """A length that the caller gives. Raises as NumPy does."""
        return operator.index(n)

    def _prepared(self, a: Any, n: Any, axis: Any, size: Any) -> tuple[Any, Any, int]:
        """The length, and the axis from the start, of an array of `size` elements of the result by default."""
        n = size(a.shape[axis]) if n is None else self.length(n)
        if n < 1:
            raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
        return a, n, normalize_axis_index(axis, a.ndim)

    def c2c(self, a: Any, n: Any, axis: Any, norm: Any, *, inverse: bool) -> Any:
        a, n, axis = self._prepared(a, n, axis, lambda size: size)
        scale = scale_of(norm, n, inverse=inverse)
        a = self.resized(a, n, axis)
        columns = math.prod(a.shape[axis + 1 :])
        moves = 1 < columns < MIN_COLUMNS
        if moves:
            a, columns = np.moveaxis(a, axis, -1), 1
        lead = a.shape[:-1] if columns == 1 and axis == a.ndim - 1 or moves else a.shape[:axis]
        pairs = np.reshape(self.pairs(a, single=a.dtype.char in SINGLE), (*lead, n, columns, 2))
        result = self.kernel("fft_c2c")(pairs, inverse=inverse, scale=scale)
        result = self.numbers(np.reshape(result, (*a.shape, 2)))  # not a view of another array
        return np.moveaxis(result, -1, axis) if moves else result

    def fft(self, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        return self.c2c(a, n, axis, norm, inverse=False)

    def ifft(self, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        return self.c2c(a, n, axis, norm, inverse=True)

    def rfft(self, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        a, n, axis = self._prepared(a, n, axis, lambda size: size)
        scale = scale_of(norm, n, inverse=False)
        rows = np.moveaxis(self.resized(a, n, axis), axis, -1).astype(
            "f" if a.dtype.char in SINGLE else "d", copy=False
        )
        return np.moveaxis(self.numbers(self.kernel("fft_r2c")(rows, scale=scale)), -1, axis)

    def irfft(self, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        a, n, axis = self._prepared(a, n, axis, lambda size: 2 * (size - 1))
        scale = scale_of(norm, n, inverse=True)
        rows = np.moveaxis(self.resized(a, n // 2 + 1, axis), axis, -1)
        pairs = self.pairs(rows, single=a.dtype.char in SINGLE)
        return np.moveaxis(self.kernel("fft_c2r")(pairs, odd=bool(n % 2 == 1), scale=scale), -1, axis)

    def hfft(self, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        return self.irfft(np.conjugate(a), n, axis, swapped(norm))

    def ihfft(self, a: Any, n: Any = None, axis: Any = -1, norm: Any = None) -> Any:
        return np.conjugate(self.rfft(a, n, axis, swapped(norm)))

    def _lengths(self, a: Any, s: Any, axes: Any, *, halves: bool = False) -> tuple[list[Any], list[int]]:
        """The lengths of a transform of several axes, and these. Raises as NumPy does."""
        if s is None:
            axes = range(a.ndim) if axes is None else axes
            axes = [operator.index(axis) for axis in axes]
            sizes = [a.shape[axis] for axis in axes]
            if halves and sizes:
                sizes[-1] = 2 * (sizes[-1] - 1)
            return sizes, axes
        sizes = [*s]
        axes = range(-len(sizes), 0) if axes is None else axes
        axes = [operator.index(axis) for axis in axes]
        if len(sizes) != len(axes):
            raise ValueError("Shape and axes have different lengths.")
        whole = [size if type(size) is not int or size != -1 else a.shape[axis] for size, axis in zip(sizes, axes)]  # noqa: B905  # of the same length
        return whole, axes

    def fftn(self, a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return self._each(self.fft, a, *self._lengths(a, s, axes), norm)

    def ifftn(self, a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return self._each(self.ifft, a, *self._lengths(a, s, axes), norm)

    def rfftn(self, a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        sizes, axes = self._lengths(a, s, axes)
        first = self.rfft(a, sizes[-1], axes[-1], norm)
        return self._each(self.fft, first, sizes[:-1], axes[:-1], norm)

    def irfftn(self, a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        sizes, axes = self._lengths(a, s, axes, halves=True)
        for size, axis in zip(sizes[:-1], axes[:-1], strict=True):
            a = self.ifft(a, size, axis, norm)
        return self.irfft(a, sizes[-1], axes[-1], norm)

    def _each(self, function: Any, a: Any, sizes: Sequence[Any], axes: Sequence[int], norm: Any) -> Any:
        for size, axis in zip(reversed(sizes), reversed(axes), strict=True):
            a = function(a, size, axis, norm)
        return a

    def fft2(self, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return self.fftn(a, s, axes, norm)

    def ifft2(self, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return self.ifftn(a, s, axes, norm)

    def rfft2(self, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return self.rfftn(a, s, axes, norm)

    def irfft2(self, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return self.irfftn(a, s, axes, norm)

    REAL: ClassVar[tuple[str, ...]] = ("rfft", "ihfft", "rfftn", "rfft2")
    ALONG_ONE: ClassVar[tuple[str, ...]] = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ALONG_SEVERAL: ClassVar[tuple[str, ...]] = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")


def is_served(name: str, dtype: Any) -> bool:
    """Whether kernels transform arrays of a dtype; real transforms have real inputs."""
    if not dtype.isnative or (name in FourierTransforms.REAL and dtype.kind == "c"):
        return False
    return dtype.char in SINGLE or dtype.char in DOUBLE


_OF_NUMPY = FourierTransforms()
PARTS: dict[Any, Any] = {np.dtype(np.complex64): np.float32, np.dtype(np.complex128): np.float64}
"""Dtypes of complex numbers, and those of their parts."""
WHOLES: dict[Any, Any] = {np.dtype(part): whole for whole, part in PARTS.items()}
kernel = functools.cache(everyday)


def _is_dense(a: Any) -> bool:
    """Whether an object is an array of complex numbers, contiguous and not empty."""
    return type(a) is np.ndarray and a.dtype in PARTS and a.flags.c_contiguous and a.size > 0


def _dense_c2c(a: AnyArray, axis: int, scale: float, *, inverse: bool) -> Any:
    """The transform of a dense array along an axis, in the fewest calls of NumPy."""
    shape, dtype = a.shape, a.dtype
    columns = 1 if axis == len(shape) - 1 else math.prod(shape[axis + 1 :])
    pairs = a.view(PARTS[dtype]).reshape(*shape[:axis], shape[axis], columns, 2)
    return kernel("fft_c2c")(pairs, inverse, scale).view(dtype).reshape(shape)


def _fft_of_dense(a: Any, n: Any, norm: Any, *, inverse: bool = False) -> Any:
    if not (_is_dense(a) and a.ndim and (n is None or (type(n) is int and n == a.shape[-1]))):
        return None
    scale = scale_of(norm, a.shape[-1], inverse=inverse)
    return _dense_c2c(a, a.ndim - 1, scale, inverse=inverse)


def _ifft_of_dense(a: Any, n: Any, norm: Any) -> Any:
    return _fft_of_dense(a, n, norm, inverse=True)


def _rfft_of_dense(a: Any, n: Any, norm: Any) -> Any:
    if type(a) is not np.ndarray or a.dtype not in WHOLES or not a.size or not a.ndim:
        return None
    if n is not None and (type(n) is not int or n != a.shape[-1]):
        return None
    scale = 1.0 if norm is None else scale_of(norm, a.shape[-1], inverse=False)
    return kernel("fft_r2c")(a, scale).view(WHOLES[a.dtype])[..., 0]


def _irfft_of_dense(a: Any, n: Any, norm: Any) -> Any:
    if not _is_dense(a) or not a.ndim:
        return None
    bins = a.shape[-1]
    length = 2 * (bins - 1) if n is None else n
    if type(length) is not int or length < 1 or length // 2 + 1 != bins:
        return None
    pairs = a.view(PARTS[a.dtype]).reshape(*a.shape, 2)
    return kernel("fft_c2r")(pairs, length % 2 == 1, scale_of(norm, length, inverse=True))


OF_DENSE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fft": _fft_of_dense,
    "ifft": _ifft_of_dense,
    "rfft": _rfft_of_dense,
    "irfft": _irfft_of_dense,
}
"""Transforms along the last axis: of an array, the length and the norm; None for other arrays and other lengths."""


def _along_one(name: str) -> Callable[..., Any]:
    original, transform = getattr(np.fft, name), getattr(_OF_NUMPY, name)
    of_dense = OF_DENSE.get(name)

    def function(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        if of_dense is not None and type(axis) is int and axis == -1:
            result = of_dense(a, n, norm)
            if result is not None:
                return result
        array = a if hasattr(a, "__array_function__") else np.asarray(a)
        if type(array) is not np.ndarray or not is_served(name, array.dtype):
            return original(array, n, axis, norm)
        return transform(array, n, axis, norm)

    return _documented(function, name)


def _dense_axes(a: AnyArray, count: int, *, inverse: bool) -> Any:
    """The transform of a dense array along its last axes; None where vectors would hardly be filled."""
    first = a.ndim - count
    if first < 0 or count == 0 or (count > 1 and a.shape[-1] < MIN_COLUMNS):
        return None
    for axis in range(a.ndim - 1, first - 1, -1):
        a = _dense_c2c(a, axis, 1.0 / a.shape[axis] if inverse else 1.0, inverse=inverse)
    return a


def _along_several(name: str) -> Callable[..., Any]:
    original, transform = getattr(np.fft, name), getattr(_OF_NUMPY, name)
    usual = (-2, -1) if name.endswith("2") else None
    is_complex, inverse = name in ("fft2", "ifft2", "fftn", "ifftn"), name.startswith("i")

    def function(
        a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = usual, norm: str | None = None
    ) -> Any:
        if is_complex and s is None and norm is None and axes is usual and _is_dense(a):
            result = _dense_axes(a, a.ndim if usual is None else 2, inverse=inverse)
            if result is not None:
                return result
        array = a if hasattr(a, "__array_function__") else np.asarray(a)
        if type(array) is not np.ndarray or not is_served(name, array.dtype):
            return original(array, s, axes, norm)
        return transform(array, s, axes, norm)

    return _documented(function, name)


def _documented(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"As ``numpy.fft.{name}``, by the fastest kernels.\n\n"
        "Arrays of other packages, and dtypes of half and extended precision, go to NumPy. Errors are NumPy's."
    )
    return function


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one, FourierTransforms.ALONG_ONE)
fftn, ifftn, rfftn, irfftn, fft2, ifft2, rfft2, irfft2 = map(_along_several, FourierTransforms.ALONG_SEVERAL)
