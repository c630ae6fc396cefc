"""`numpy.fft`: the transforms of this package, which have NumPy's arguments."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitkernels.dispatch import fourier
from jitkernels.patching.conditions import are_finite, is_plain
from jitkernels.patching.piece import Call, piece
from jitkernels.patching.sample_arrays import normal

DTYPES = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128")))
REAL_INPUT = "rfft"
"""The transform that NumPy refuses complex numbers."""


def _calls(name: str) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        for shape in ((64,), (1024,), (100, 256), (1000,)):
            x = normal(shape)
            x = x if name == REAL_INPUT else x + 1j
            yield Call(" x ".join(map(str, shape)), f"numpy.fft:{name}", (x,))

    return calls


def _replacement(name: str) -> Callable[..., Any]:
    transform = getattr(fourier, name)

    def of_axis(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
        if not is_plain(a, DTYPES) or out is not None or a.size == 0 or type(axis) is not int:
            return NotImplemented
        if not -a.ndim <= axis < a.ndim or not (n is None or (type(n) is int and n > 0)):
            return NotImplemented
        if norm not in (None, "backward", "ortho", "forward") or (name == REAL_INPUT and a.dtype.kind == "c"):
            return NotImplemented
        result = transform(a, n=n, axis=axis, norm=norm)
        numbers = result.view(result.real.dtype) if result.dtype.kind == "c" and result.flags.c_contiguous else result
        return result if are_finite(numbers) else NotImplemented  # NumPy says what has overflowed

    return of_axis


for _name in ("fft", "ifft", "rfft", "irfft"):
    piece(
        f"numpy.fft:{_name}",
        serves="exact arrays of float32, float64, complex64 and complex128 that are not empty, without `out`",
        calls=_calls(_name),
    )(_replacement(_name))
