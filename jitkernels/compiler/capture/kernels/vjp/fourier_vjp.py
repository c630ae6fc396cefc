"""Vector-Jacobian products of Fourier transforms, which are linear: transforms by the conjugate transpose."""

from typing import Any

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of
from jitkernels.dispatch.operators import everyday


@vjp_of(FftC2CAttr)
def fft_c2c(attr: Any, dy: Any, x: Any) -> list[Any]:  # noqa: ARG001  # of linear functions
    """The matrix is symmetric: its conjugate transpose is that of the other direction."""
    return [everyday("fft_c2c")(dy, inverse=not attr.inverse, scale=attr.scale)]


@vjp_of(FftR2CAttr)
def fft_r2c(attr: Any, dy: Any, x: Any) -> list[Any]:
    """Elements between the ends stand for two each in the inverse, and for one here."""
    return [everyday("fft_c2r")(dy * _halves(dy.shape[-2], x.shape[-1], 0.5, dy.dtype), _is_odd(x), attr.scale)]


@vjp_of(FftC2RAttr)
def fft_c2r(attr: Any, dy: Any, x: Any) -> list[Any]:
    """Elements between the ends stand for two each."""
    spectrum = everyday("fft_r2c")(dy, attr.scale)
    return [spectrum * _halves(x.shape[-2], dy.shape[-1], 2.0, dy.dtype)]


def _is_odd(x: Any) -> bool:
    return bool(x.shape[-1] % 2 == 1)


def _halves(bins: Any, n: Any, between: float, dtype: Any) -> Any:
    """A column of 1 for elements that are their own conjugates, and a factor for the others."""
    k = np.arange(bins)
    return np.where((k == 0) | (2 * k == n), 1.0, between).astype(dtype)[:, np.newaxis]
