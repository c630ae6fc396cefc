"""Kernels behind the functions of NumPy, SciPy and scikit-learn: `jitkernels.patch()`, and `unpatch`.

A patched function is the same object with other code, so it makes no difference who imported it, and nothing is left
when its code is put back. The new code calls the replacement, and the original where that declines. None of the three
packages but NumPy is a dependency, and none is imported here: those imported later are patched then.
"""

from jitkernels.patching.install import Patch, patch, unpatch
from jitkernels.patching.piece import Piece, pieces

__all__ = ["Patch", "Piece", "patch", "pieces", "unpatch"]
