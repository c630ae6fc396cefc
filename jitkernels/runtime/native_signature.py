"""C signatures of native functions, which compiled code calls by address, and such calls from Python.

A node ``native_call`` has as operands the address, an order token, and the arguments; its items are the result and the
next token. Calls form a chain of tokens, so that each runs as often and in the order in which the program does.
"""

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.core.frozen_dataclass import frozen_dataclass

CTYPES: dict[str, Any] = {
    "bool": ctypes.c_bool, "float32": ctypes.c_float, "float64": ctypes.c_double,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""The C types of native functions by dtypes."""


@frozen_dataclass
class NativeSignature:
    """Dtypes of the parameters, and that of the result; "" for ``void``."""

    parameters: tuple[str, ...]
    result: str

    def call(self, address: int, arguments: Sequence[Any]) -> Any:
        """Call the function at an address. Returns a NumPy scalar, False for ``void``."""
        function = _prototype(self)(address)
        pairs = zip(self.parameters, arguments, strict=True)
        value = function(*(np.dtype(dtype).type(argument).item() for dtype, argument in pairs))
        return np.dtype(self.result).type(value) if self.result else np.False_


@functools.cache
def _prototype(signature: NativeSignature) -> Any:
    result = CTYPES[signature.result] if signature.result else None
    return ctypes.CFUNCTYPE(result, *(CTYPES[kind] for kind in signature.parameters))
