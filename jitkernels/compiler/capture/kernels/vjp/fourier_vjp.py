"""Vector-Jacobian products of Fourier transforms, which are linear: transforms by the conjugate transpose."""

from typing import Any

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of
from jitkernels.dispatch.operators import everyday


@vjp_of(FftC2CAttr)
def fft_c2c(attr: Any, dy: Any, x: Any) -> list[Any]:  # of linear functions
    """The matrix is symmetric: its conjugate transpose is that of the other direction."""
    return [everyday("fft_c2c")(dy, inverse=not attr.inverse, scale=attr.scale)]


@vjp_of(FftR2CAttr)
def fft_r2c(attr: Any, dy: Any, x: Any) -> list[Any]:
    """Elements between the ends stand for two each in the inverse, and for one here."""
    is_odd = bool(x.shape[-1] % 2 == 1)
    return [everyday("fft_c2r")(_between_ends(dy, 0.5, is_odd=is_odd), odd=is_odd, scale=attr.scale)]


@vjp_of(FftC2RAttr)
def fft_c2r(attr: Any, dy: Any, x: Any) -> list[Any]:  # of linear functions
    """Elements between the ends stand for two each."""
    return [_between_ends(everyday("fft_r2c")(dy, scale=attr.scale), 2.0, is_odd=attr.odd)]


def _between_ends(spectrum: Any, factor: float, *, is_odd: bool) -> Any:
    """The spectrum, whose elements are multiplied unless they are their own conjugates: ends."""
    first, last = spectrum[..., :1, :], spectrum[..., -1:, :]
    if is_odd:
        return np.concatenate([first, spectrum[..., 1:, :] * factor], axis=-2)
    return np.concatenate([first, spectrum[..., 1:-1, :] * factor, last], axis=-2)
