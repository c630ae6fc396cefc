"""FFT_C2C, FFT_R2C and FFT_C2R, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "fft_c2c": {
        "always forward": ("if attr.inverse", "if False"),
        "always inverse": ("if attr.inverse", "if True"),
        "no scale": ("attr.scale * transform", "transform"),
        "rows instead of columns": ("axis=1, norm", "axis=0, norm"),
        "imaginary parts are ignored": ("+ 1j * x[..., 1]", "+ 0j"),
        "conjugate": ("+ 1j * x[..., 1]", "- 1j * x[..., 1]"),
        "first column for all": ("(values, axis", "(values[:, :, :1] + 0 * values, axis"),
        "last element is the first": ("y[..., 0] = ", "result[:, -1] = result[:, 0]\n    y[..., 0] = "),
    },
    "fft_r2c": {
        "no scale": ("attr.scale * np", "np"),
        "conjugate": ("= result.imag", "= -result.imag"),
        "last element is missing": ("y[..., 0] = ", "result[:, attr.n // 2 :] = 0\n    y[..., 0] = "),
        "rows instead of columns": ("axis=1)", "axis=0)[:, : y.shape[1]]"),
        "always even": ("np.fft.rfft(x", "np.fft.rfft(x[:, : max(attr.n // 2 * 2, 1)], attr.n"),
    },
    "fft_c2r": {
        "no scale": ("attr.scale * np", "np"),
        "divided by n": ('norm="forward"', 'norm="backward"'),
        "conjugate": ("+ 1j", "- 1j"),
        "imaginary parts are ignored": ("+ 1j * x[..., 1]", "+ 0j"),
        "always odd": ("values, y.shape[1]", "values[:, : (y.shape[1] + 1) // 2], y.shape[1]"),
    },
}


def fft_c2c(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if not x.size:
        return
    values = x[..., 0] + 1j * x[..., 1]
    transform = np.fft.ifft if attr.inverse else np.fft.fft
    result = attr.scale * transform(values, axis=1, norm="forward" if transform is np.fft.ifft else None)
    y[..., 0] = result.real
    y[..., 1] = result.imag


def fft_r2c(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = 0
    if not x.size:
        return
    result = attr.scale * np.fft.rfft(x, axis=1)
    y[..., 0] = result.real
    y[..., 1] = result.imag


def fft_c2r(attr: Any, x: AnyArray, y: AnyArray) -> None:
    if not y.size:
        return
    values = x[..., 0] + 1j * x[..., 1]
    y[...] = attr.scale * np.fft.irfft(values, y.shape[1], axis=1, norm="forward")
