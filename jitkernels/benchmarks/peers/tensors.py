"""Arrays of kernels as torch has them."""

from typing import TYPE_CHECKING

import numpy as np

from jitkernels.signature import AnyArray

if TYPE_CHECKING:
    from torch import Tensor


def tensor(array: AnyArray) -> "Tensor":
    """The same memory; of uint16, which stands for the bits of bfloat16, as such numbers."""
    import torch

    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
