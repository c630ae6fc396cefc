"""The extension `fft` of the Array API standard, by the Fourier kernels of the registry."""

from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.dispatch import fourier
from jitkernels.xp.dispatch import by_numpy

KERNEL_NAMES = ("fft", "fftn", "hfft", "ifft", "ifftn", "ihfft", "irfft", "irfftn", "rfft", "rfftn")
"""Transforms, which kernels compute."""
NUMPY_NAMES = ("fftfreq", "fftshift", "ifftshift", "rfftfreq")
"""What `numpy.fft` has by the standard's name and meaning."""


def _frequencies(function: Any) -> Any:
    """NumPy's frequencies, in a dtype."""

    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
        return function(n, d, device=device).astype(np.float64 if dtype is None else dtype)

    frequencies.__name__ = function.__name__
    return frequencies


FUNCTIONS = {name: by_numpy(name, getattr(fourier, name)) for name in KERNEL_NAMES}
FUNCTIONS |= {name: by_numpy(name, getattr(np.fft, name)) for name in NUMPY_NAMES if name.endswith("shift")}
FUNCTIONS |= {
    name: by_numpy(name, _frequencies(getattr(np.fft, name))) for name in NUMPY_NAMES if name.endswith("freq")
}
globals().update(FUNCTIONS)
__all__ = sorted(FUNCTIONS)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # the functions of the table
