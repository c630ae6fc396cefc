"""NumPy references of FFT_C2C, FFT_R2C and FFT_C2R."""

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(FftC2CAttr)
def fft_c2c(attr: FftC2CAttr, x: AnyArray, y: AnyArray) -> None:
    """The parts are put together and taken apart, whatever their dtype."""
    if not x.size:
        return
    transform = np.fft.ifft if attr.inverse else np.fft.fft
    with np.errstate(all="ignore"):
        result = transform(x[..., 0] + 1j * x[..., 1], axis=1, norm="forward" if attr.inverse else "backward")
        y[..., 0], y[..., 1] = attr.scale * result.real, attr.scale * result.imag


@implements(FftR2CAttr)
def fft_r2c(attr: FftR2CAttr, x: AnyArray, y: AnyArray) -> None:
    if not attr.n:
        y[...] = 0
    if not x.size:
        return
    with np.errstate(all="ignore"):
        result = np.fft.rfft(x, axis=1)
        y[..., 0], y[..., 1] = attr.scale * result.real, attr.scale * result.imag


@implements(FftC2RAttr)
def fft_c2r(attr: FftC2RAttr, x: AnyArray, y: AnyArray) -> None:
    if not y.size:
        return
    with np.errstate(all="ignore"):
        y[...] = attr.scale * np.fft.irfft(x[..., 0] + 1j * x[..., 1], y.shape[1], axis=1, norm="forward")
