"""Vector-Jacobian product of RESIZE2D, which is linear: products with the matrices of its weights."""

from typing import Any

import numpy as np

from jitkernels.attrs.resize import Resize2DAttr
from jitkernels.compiler.capture.kernels.vjp_registry import vjp_of


@vjp_of(Resize2DAttr)
def resize2d(attr: Any, dy: Any, x: Any) -> list[Any]:
    """The cotangent of the images: rows, and then columns, by the transposed matrices."""
    channels = x.shape[-1]
    rows = np.reshape(dy, (-1, attr.out_height, attr.out_width * channels))
    rows = np.reshape(attr.matrix(0).T @ rows, (-1, attr.out_width, channels))
    return [np.reshape(attr.matrix(1).T @ rows, x.shape)]
