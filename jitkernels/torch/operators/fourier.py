"""Fourier transforms along several axes, scaled as torch's codes tell."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from jitkernels.torch.aten_table import operator

Norm = Literal["backward", "ortho", "forward"]
NORMS: dict[int, tuple[Norm, Norm]] = {0: ("backward", "forward"), 1: ("ortho", "ortho"), 2: ("forward", "backward")}
"""NumPy's names for forward and backward transforms, by torch's code: unscaled, by the root of n, by n."""


@operator("_fft_c2c.default")
def c2c(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    if not len(dim):
        return np.copy(x)
    norm = NORMS[normalization][not forward]
    return (np.fft.fftn if forward else np.fft.ifftn)(x, axes=tuple(dim), norm=norm)


@operator("_fft_r2c.default")
def r2c(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    transform = np.fft.rfftn if onesided else np.fft.fftn
    return transform(x, axes=tuple(dim), norm=NORMS[normalization][0])


@operator("_fft_c2r.default")
def c2r(x: Any, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
    sizes = [x.shape[axis] for axis in dim[:-1]] + [last_dim_size]
    return np.fft.irfftn(x, s=sizes, axes=tuple(dim), norm=NORMS[normalization][1])
