"""NumPy's functions on arrays of `jk.xp`: ufuncs of the table are recorded, others read the elements."""

from typing import Any

import numpy as np

from jitkernels.xp.array_object import NamespaceArray
from jitkernels.xp.dispatch import elements_of, elementwise, wrapped
from jitkernels.xp.elementwise_functions import UFUNCS

RECORDED = frozenset(UFUNCS.values())
IN_PLACE = frozenset((np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis))
"""Functions that write to their first argument."""
KNOWN = (NamespaceArray, np.ndarray, np.generic, bool, int, float, complex, list, tuple)


def _array_ufunc(self: NamespaceArray, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
    if not all(isinstance(one, KNOWN) for one in inputs):
        return NotImplemented
    if method == "__call__" and not keywords and ufunc in RECORDED:
        return elementwise(ufunc, *inputs)
    outs = keywords.get("out", ())
    if any(type(one) is NamespaceArray for one in outs):
        return NotImplemented
    if method == "at":
        return ufunc.at(_written(inputs[0]), *elements_of(inputs[1:]))
    result = getattr(ufunc, method)(*elements_of(inputs), **{k: elements_of(v) for k, v in keywords.items()})
    return result if outs else wrapped(result)


def _array_function(self: NamespaceArray, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if not all(issubclass(one, NamespaceArray | np.ndarray) for one in types):
        return NotImplemented
    named = {name: elements_of(value) for name, value in kwargs.items()}
    if function in IN_PLACE:
        return function(_written(args[0]), *elements_of(args[1:]), **named) if args else NotImplemented
    return wrapped(function(*elements_of(args), **named))


def _written(array: Any) -> Any:
    """The elements of an array that a function writes to, which no other array of `jk.xp` shares."""
    return array._writable() if type(array) is NamespaceArray else elements_of(array)


def define() -> None:
    """Give `NamespaceArray` NumPy's protocols."""
    NamespaceArray.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined]
    NamespaceArray.__array_function__ = _array_function  # type: ignore[attr-defined]
