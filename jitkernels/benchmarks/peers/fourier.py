"""Peers of FFT_C2C, FFT_R2C and FFT_C2R: `numpy.fft`, and SciPy where it is installed."""

from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, peer


def complex_numbers(pairs: AnyArray) -> AnyArray:
    """The complex numbers of pairs, without a copy."""
    return pairs.view(np.complex64 if pairs.itemsize == 4 else np.complex128)[..., 0]


def _store(transform: Any, y: AnyArray, scale: Any) -> None:
    np.multiply(transform(), scale, out=y)


def stored(transform: Any, y: AnyArray, scale: float) -> Bound:
    """A call that stores what a transform returns, scaled."""
    return partial(_store, transform, y, y.dtype.type(scale))


def _c2c(library: Any, attr: FftC2CAttr, x: AnyArray, y: AnyArray) -> Bound:
    transform = library.ifft if attr.inverse else library.fft
    norm = "forward" if attr.inverse else "backward"
    return stored(partial(transform, complex_numbers(x), axis=1, norm=norm), complex_numbers(y), attr.scale)


def _r2c(library: Any, attr: FftR2CAttr, x: AnyArray, y: AnyArray) -> Bound:
    return stored(partial(library.rfft, x), complex_numbers(y), attr.scale)


def _c2r(library: Any, attr: FftC2RAttr, x: AnyArray, y: AnyArray) -> Bound:
    return stored(partial(library.irfft, complex_numbers(x), y.shape[1], norm="forward"), y, attr.scale)


for _schema, _bound in ((FftC2CAttr, _c2c), (FftR2CAttr, _r2c), (FftC2RAttr, _c2r)):
    peer(_schema)(partial(_bound, np.fft))


def _by_scipy(bound: Any, attr: Any, x: AnyArray, y: AnyArray) -> Bound:
    import scipy.fft

    result: Bound = bound(scipy.fft, attr, x, y)
    return result


peer(FftC2CAttr, name="scipy")(partial(_by_scipy, _c2c))
peer(FftR2CAttr, name="scipy")(partial(_by_scipy, _r2c))
peer(FftC2RAttr, name="scipy")(partial(_by_scipy, _c2r))
