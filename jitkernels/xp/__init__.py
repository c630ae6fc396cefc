"""`jk.xp`: a namespace of the Array API standard over kernels of the registry and lazily fused expressions.

Elementwise functions and reductions of large arrays are recorded, and compiled to one loop nest when their elements are
needed; small arrays are computed at once. Everything else is done by kernels of the registry where there are some, and
by NumPy.
"""

import sys
from inspect import isfunction
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.xp import (
    creation_functions,
    data_type_functions,
    elementwise_functions,
    fft,
    linalg,
    manipulation_functions,
    numpy_protocols,
    statistical_functions,
)
from jitkernels.xp.array_object import NamespaceArray
from jitkernels.xp.data_type_functions import DTYPES, __array_api_version__, __array_namespace_info__

e, inf, nan, pi, newaxis = np.e, np.inf, np.nan, np.pi, None


def _public(module: Any) -> dict[str, Any]:
    """The functions that a module defines."""
    named = {name: one for name, one in vars(module).items() if not name.startswith("_") and isfunction(one)}
    return {name: one for name, one in named.items() if one.__module__ == module.__name__}


FUNCTIONS: dict[str, Any] = {
    **elementwise_functions.FUNCTIONS,
    **_public(creation_functions),
    **_public(data_type_functions),
    **_public(statistical_functions),
    **manipulation_functions.FUNCTIONS,
    **{name: linalg.FUNCTIONS[name] for name in ("matmul", "matrix_transpose", "tensordot", "vecdot")},
}
"""The functions of the namespace, but for those of its extensions."""
globals().update(FUNCTIONS)
globals().update({name: dtype.type for name, dtype in DTYPES.items()})
Array = NamespaceArray
Array._namespace = sys.modules[__name__]
numpy_protocols.define()
__all__ = [
    "Array", "__array_api_version__", "__array_namespace_info__", "e", "fft", "inf", "linalg", "nan", "newaxis", "pi",
    *sorted(DTYPES), *sorted(FUNCTIONS),
]  # fmt: skip

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # the functions of the table
