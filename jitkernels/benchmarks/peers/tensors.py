"""Kernel arrays as torch tensors."""

from typing import TYPE_CHECKING

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

if TYPE_CHECKING:
    from torch import Tensor


def tensor(array: AnyArray) -> "Tensor":
    """Return a tensor of the same memory; uint16, which holds the bits of bfloat16, becomes bfloat16."""
    import torch

    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
