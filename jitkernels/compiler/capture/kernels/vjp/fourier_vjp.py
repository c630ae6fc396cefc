"""Vector-Jacobian products of Fourier transforms, which are linear: transforms by the conjugate transpose."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of
from jitkernels.dispatch.operators import everyday


@vjp_of(FftC2CAttr)
def fft_c2c(attr: Any, dy: Any, x: Any, *scale: Any) -> list[Any]:
    """The matrix is symmetric: its conjugate transpose is that of the other direction."""
    transform = everyday("fft_c2c")
    dx = transform(dy, inverse=not attr.inverse, scale=_factor(attr, scale))
    return [dx, *[np.sum(dy * transform(x, inverse=attr.inverse)) for _ in scale]]


@vjp_of(FftR2CAttr)
def fft_r2c(attr: Any, dy: Any, x: Any, *scale: Any) -> list[Any]:
    """Elements between the ends stand for two each in the inverse, and for one here."""
    is_odd = bool(x.shape[-1] % 2 == 1)
    dx = everyday("fft_c2r")(_between_ends(dy, 0.5, is_odd=is_odd), odd=is_odd, scale=_factor(attr, scale))
    return [dx, *[np.sum(dy * everyday("fft_r2c")(x)) for _ in scale]]


@vjp_of(FftC2RAttr)
def fft_c2r(attr: Any, dy: Any, x: Any, *scale: Any) -> list[Any]:
    """Elements between the ends stand for two each."""
    dx = _between_ends(everyday("fft_r2c")(dy, scale=_factor(attr, scale)), 2.0, is_odd=attr.odd)
    return [dx, *[np.sum(dy * everyday("fft_c2r")(x, odd=attr.odd)) for _ in scale]]


def _factor(attr: Any, scale: Sequence[Any]) -> Any:
    """The factor of a transform, which is an input where its value is not known while tracing."""
    return scale[0] if scale else attr.scale


def _between_ends(spectrum: Any, factor: float, *, is_odd: bool) -> Any:
    """The spectrum, whose elements are multiplied unless they are their own conjugates: ends."""
    first, last = spectrum[..., :1, :], spectrum[..., -1:, :]
    if is_odd:
        return np.concatenate([first, spectrum[..., 1:, :] * factor], axis=-2)
    return np.concatenate([first, spectrum[..., 1:-1, :] * factor, last], axis=-2)
