"""NumPy functions without a graph operation: trace those written in Python, call others at run time as nodes."""

import builtins
import math
import os
import types
import warnings
from typing import Any

import numpy as np

from jitkernels.compiler.capture import free_variables
from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow import runtime_hooks
from jitkernels.compiler.capture.numpy_namespace_proxy import stand_in
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.rewrite.ast_builder import FLOW
from jitkernels.compiler.capture.rewrite.rewrite_function import rewrite_code
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import NUMPY, PACKAGE, Tracer
from jitkernels.compiler.ir import pytree, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.numpy_call_spec import ArrayPlaceholder, Called, described

FOLDERS = (
    "refer", "attrs", "compiler/capture/random", "compiler/capture/native", "compiler/capture/linear_algebra",
    "compiler/capture/python_numbers",
)  # fmt: skip
REFERENCES = tuple(f"{PACKAGE}{folder}{os.sep}" for folder in FOLDERS)
"""Folders of the references of kernels, and of the code that these use; of code that traces themselves run."""
_copies: dict[Any, Any] = {}


def implementation(function: Any) -> Any:
    """The Python code of a NumPy function, if there is any."""
    return getattr(function, "_implementation", None) or function


def is_python(function: Any) -> bool:
    """Whether a NumPy function is written in Python."""
    code = implementation(function)
    return isinstance(code, types.FunctionType) and code.__code__.co_filename.startswith(NUMPY)


@serves("traced copy")
def traced_copy(function: Any) -> Any:
    """NumPy's code, or a reference's, with globals that refer to the NumPy proxy."""
    python_function = implementation(function)
    if python_function in _copies:
        return _copies[python_function]
    names: dict[str, Any] = {"__builtins__": builtins, "__name__": python_function.__module__}
    rewritten_code = (
        rewrite_code(python_function.__code__) if python_function.__code__.co_filename.startswith(REFERENCES) else None
    )
    if rewritten_code is not None and not python_function.__closure__:
        names[FLOW] = runtime_hooks
    code = python_function.__code__ if rewritten_code is None or python_function.__closure__ else rewritten_code
    copied = types.FunctionType(
        code, names, python_function.__name__, python_function.__defaults__, python_function.__closure__
    )
    copied.__kwdefaults__ = python_function.__kwdefaults__
    _copies[python_function] = copied
    for name, value in python_function.__globals__.items():
        if name in _names(python_function.__code__):
            names[name] = traced_copy(value) if _is_own(value) else stand_in(value)
    return copied


def _is_own(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith((NUMPY, *REFERENCES))


def _names(code: types.CodeType) -> set[str]:
    return {name for part in free_variables.codes(code) for name in part.co_names}


def emptied(
    function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], *, sizes: bool = True
) -> tuple[Called, list[Node]]:
    """A call with holes in place of arrays, and the nodes that fill them; `sizes`: specialize it to their shapes."""
    name = getattr(function, "__name__", "function")
    nodes: list[Node] = []
    kinds: list[Any] = []

    def without(value: Any) -> Any:
        if type(value) is Traced:
            for extent in value.extents if sizes else ():
                int(extent)
            nodes.append(value.node)
            kinds.append(value.python or ("scalar" if value.is_scalar else "array"))
            return ArrayPlaceholder(len(nodes) - 1)
        if type(value) is SymInt:
            return int(value)
        if type(value) is str and value in ("K", "A"):
            raise UnsupportedError(f"numpy.{name} in the order of memory")
        if callable(value) and not isinstance(value, type | np.ufunc):
            raise UnsupportedError(f"numpy.{name} with a function")
        if isinstance(value, np.ndarray):
            raise UnsupportedError(f"numpy.{name} with an array that is no argument of the function")
        return value

    arguments, keywords = pytree.tree_map(without, (arguments, keywords))
    return Called(function, arguments, keywords, kinds), nodes


OF_KNOWN_SHAPE = frozenset(
    {
        np.linalg.inv, np.linalg.solve, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.qr,
        np.linalg.svd, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.pinv, np.linalg.matrix_rank, np.linalg.cond,
        np.linalg.matrix_power, np.partition, np.argpartition, np.median, np.percentile, np.quantile, np.nanmedian,
        np.nanpercentile, np.nanquantile, np.nanmean, np.nanstd, np.nanvar, np.nanmax, np.nanmin, np.nanargmax,
        np.nanargmin, np.convolve, np.correlate, np.digitize, np.average, np.cov, np.corrcoef, np.kron, np.lexsort,
    }
)  # fmt: skip
"""Functions whose result dtypes and shapes depend on argument dtypes and shapes only."""


def _example(node: Node) -> Any:
    """An array of the node's dtype and shape, for shape inference."""
    shape = [symbolic_dims.value_of(extent) for extent in node.shape]
    if len(shape) > 1 and shape[-1] == shape[-2]:
        return np.broadcast_to(np.eye(shape[-1]), shape).astype(node.dtype)
    return np.arange(math.prod(shape)).reshape(shape).astype(node.dtype)


def call_at_run_time(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A call of NumPy as a node, specialized to the current shapes."""
    name = getattr(function, "__name__", "function")
    call, nodes = emptied(function, arguments, keywords)
    is_known_shape = function in OF_KNOWN_SHAPE
    operands = [_example(node) if is_known_shape else tracer.value(node) for node in nodes]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # warnings appear when the code runs
        example_result = call(*operands)
    examples = example_result if isinstance(example_result, tuple) else (example_result,)
    if any(
        np.may_share_memory(example, array)
        for example in examples
        if isinstance(example, np.ndarray)
        for array in operands
    ):
        raise UnsupportedError(f"numpy.{name} that returns a view")
    if not all(type(example) is np.ndarray or isinstance(example, np.generic) for example in examples) or any(
        not is_known(example.dtype) for example in examples
    ):
        raise UnsupportedError(f"numpy.{name}")
    call.expected = described(example_result)
    tracer.note(f"numpy.{name} is computed by NumPy, for these shapes")
    first = examples[0]
    node = tracer.placed(Node("call", nodes, first.dtype.name, first.shape, {"function": call}))
    if not isinstance(example_result, tuple):
        return _array_like(tracer, node, example_result)
    results = [
        _array_like(tracer, Node("item", (node,), item.dtype.name, item.shape, {"index": i}), item)
        for i, item in enumerate(example_result)
    ]
    return type(example_result)(*results) if hasattr(example_result, "_fields") else tuple(results)


def _array_like(tracer: Tracer, node: Node, example: Any) -> Traced:
    is_c = isinstance(example, np.generic) or example.flags.c_contiguous
    return fresh(tracer, node, is_scalar=isinstance(example, np.generic), is_c=True if is_c else None)


def call_with_shape_of(tracer: Tracer, function: Any, name: str, dtype: str, like: Traced, *arrays: Traced) -> Traced:
    """A call of NumPy whose result has the shape of the array `like`, for all shapes."""
    tracer.note(f"numpy.{name} is computed by NumPy")
    nodes = [array.node for array in arrays]
    node = tracer.placed(Node("call", nodes, dtype, like.extents, {"function": function, "name": name}))
    return fresh(tracer, node, is_scalar=not like.ndim)
