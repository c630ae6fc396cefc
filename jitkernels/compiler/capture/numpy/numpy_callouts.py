"""NumPy's functions that no operation stands for: those written in Python are traced, others are called as nodes."""

import builtins
import math
import os
import types
import warnings
from typing import Any

import numpy as np

from jitkernels.frontends import captured
from jitkernels.frontends.flow import operators
from jitkernels.frontends.rewriting.calls import FLOW
from jitkernels.frontends.rewriting.code import rewritten
from jitkernels.frontends.standin import stand_in
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import NUMPY, PACKAGE, Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph import extents
from jitkernels.graph.calling import Called, Hole, described
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node
from jitkernels.graph.scalars import is_known

REFERENCES = tuple(f"{PACKAGE}{folder}{os.sep}" for folder in ("refer", "attrs"))
"""Where references of kernels are, and what they use."""
_copies: dict[Any, Any] = {}


def implementation(function: Any) -> Any:
    """The Python code behind one of NumPy's functions, if there is any."""
    return getattr(function, "_implementation", None) or function


def is_python(function: Any) -> bool:
    """Whether one of NumPy's functions is written in Python."""
    found = implementation(function)
    return isinstance(found, types.FunctionType) and found.__code__.co_filename.startswith(NUMPY)


def traced_copy(function: Any) -> Any:
    """NumPy's code, or a reference's, which sees the stand-in of NumPy in place of what makes arrays of nothing."""
    found = implementation(function)
    if found in _copies:
        return _copies[found]
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": found.__module__}
    flowing = rewritten(found.__code__) if found.__code__.co_filename.startswith(REFERENCES) else None
    if flowing is not None and not found.__closure__:
        names[FLOW] = operators
    code = found.__code__ if flowing is None or found.__closure__ else flowing
    made = types.FunctionType(code, names, found.__name__, found.__defaults__, found.__closure__)
    made.__kwdefaults__ = found.__kwdefaults__
    _copies[found] = made
    for name, value in found.__globals__.items():
        if name in _names(found.__code__):
            names[name] = traced_copy(value) if _is_own(value) else stand_in(value)
    return made


def _is_own(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith(
        (NUMPY, *REFERENCES)
    )


def _names(code: types.CodeType) -> set[str]:
    return {name for one in captured.codes(code) for name in one.co_names}


def emptied(
    function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], *, sizes: bool = True
) -> tuple[Called, list[Node]]:
    """A call with nodes taken out of its arguments, which are put back as arrays; `sizes`: for those they have now."""
    name = getattr(function, "__name__", "function")
    nodes: list[Node] = []
    kinds: list[Any] = []

    def without(value: Any) -> Any:
        if type(value) is Traced:
            for extent in value.extents if sizes else ():
                int(extent)
            nodes.append(value.node)
            kinds.append(value.python or ("scalar" if value.is_scalar else "array"))
            return Hole(len(nodes) - 1)
        if type(value) is Whole:
            return int(value)
        if type(value) is str and value in ("K", "A"):
            raise UnknownError(f"numpy.{name} in the order of memory")
        if type(value) in (tuple, list):
            return type(value)(without(one) for one in value)
        if type(value) is dict:
            return {key: without(one) for key, one in value.items()}
        if callable(value) and not isinstance(value, type | np.ufunc):
            raise UnknownError(f"numpy.{name} with a function")
        if isinstance(value, np.ndarray):
            raise UnknownError(f"numpy.{name} with an array that is no argument of the function")
        return value

    given = without(arguments), without(keywords)
    return Called(function, *given, kinds), nodes


OF_KNOWN_SHAPE = frozenset(
    {
        np.linalg.inv, np.linalg.solve, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.qr,
        np.linalg.svd, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.pinv, np.linalg.matrix_rank, np.linalg.cond,
        np.linalg.matrix_power, np.partition, np.argpartition, np.median, np.percentile, np.quantile, np.nanmedian,
        np.nanpercentile, np.nanquantile, np.nanmean, np.nanstd, np.nanvar, np.nanmax, np.nanmin, np.nanargmax,
        np.nanargmin, np.convolve, np.correlate, np.digitize, np.average, np.cov, np.corrcoef, np.kron, np.lexsort,
    }
)  # fmt: skip
"""Functions whose results have dtypes and shapes that follow from those of their arguments."""


def _example(node: Node) -> Any:
    """An array like one that the running code will have, for what asks its dtype and shape alone."""
    shape = [extents.value_of(one) for one in node.shape]
    if len(shape) > 1 and shape[-1] == shape[-2]:
        return np.broadcast_to(np.eye(shape[-1]), shape).astype(node.dtype)
    return np.arange(math.prod(shape)).reshape(shape).astype(node.dtype)


def computed(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A call as a node, for the shapes of the arrays that it has now."""
    name = getattr(function, "__name__", "function")
    call, nodes = emptied(function, arguments, keywords)
    is_known_shape = function in OF_KNOWN_SHAPE
    given = [_example(node) if is_known_shape else tracer.value(node) for node in nodes]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # which are given when the code runs
        found = call(*given)
    listed = found if isinstance(found, tuple) else (found,)
    if any(
        np.may_share_memory(one, array) for one in listed if isinstance(one, np.ndarray) for array in given
    ):
        raise UnknownError(f"numpy.{name} that gives a view")
    if not all(type(one) is np.ndarray or isinstance(one, np.generic) for one in listed) or any(
        not is_known(one.dtype) for one in listed
    ):
        raise UnknownError(f"numpy.{name}")
    call.expected = described(found)
    tracer.note(f"numpy.{name} is computed by NumPy, for these shapes")
    first = listed[0]
    node = tracer.placed(Node("call", nodes, first.dtype.name, first.shape, {"function": call}))
    if not isinstance(found, tuple):
        return _given(tracer, node, found)
    made = [
        _given(tracer, Node("item", (node,), one.dtype.name, one.shape, {"index": i}), one)
        for i, one in enumerate(found)
    ]
    return type(found)(*made) if hasattr(found, "_fields") else tuple(made)


def _given(tracer: Tracer, node: Node, found: Any) -> Traced:
    is_c = isinstance(found, np.generic) or found.flags.c_contiguous
    return fresh(tracer, node, is_scalar=isinstance(found, np.generic), is_c=True if is_c else None)


def shaped(tracer: Tracer, function: Any, name: str, dtype: str, like: Traced, *arrays: Traced) -> Traced:
    """A call by NumPy whose result has the shape of an array, whatever that is."""
    tracer.note(f"numpy.{name} is computed by NumPy")
    nodes = [one.node for one in arrays]
    node = tracer.placed(Node("call", nodes, dtype, like.extents, {"function": function, "name": name}))
    return fresh(tracer, node, is_scalar=not like.ndim)
