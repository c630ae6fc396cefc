"""Register peers in one line: torch, JAX, numba and onnxruntime from an expression, a function or an operator."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, peer, threads

OPSET = 23
MIN_JAX_WORK = 10_000
"""JAX does not run below this number of elements and operations: it compiles for seconds, and a call costs 7 us."""
FUNCTIONS = ("exp", "log", "log1p", "sqrt", "sin", "cos", "tanh", "where")
"""NumPy functions allowed in expressions, besides ``erf``."""


def inputs_of(attr: KernelAttr, arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """Return the arrays of an attr that are read, including outputs that it adds to."""
    known = attr.signature().arrays
    return [array for array, argument in zip(arrays, known, strict=True) if argument.role != "out"]


def tensor(array: AnyArray) -> Any:
    """Return a torch tensor of the same memory; uint16, which holds the bits of bfloat16, becomes bfloat16."""
    import torch

    if array.dtype == np.uint16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def stored(out: AnyArray, function: Callable[..., Any], *inputs: Any) -> Bound:
    """Return the call of a function without ``out``, whose result is copied into an array."""
    return partial(_store, out, function, *inputs)


def _store(out: AnyArray, function: Callable[..., Any], *inputs: Any) -> None:
    out[...] = function(*inputs)


def stored_tensor(out: Any, function: Callable[..., Any], *inputs: Any) -> Bound:
    """Return the call of a torch function without ``out``, whose result is copied into a tensor."""
    return partial(_store_tensor, out, function, *inputs)


def _store_tensor(out: Any, function: Callable[..., Any], *inputs: Any) -> None:
    out.copy_(function(*inputs))


def of_torch(schema: type[KernelAttr], function: Callable[..., Bound | None], *, narrow: bool = False) -> None:
    """Register a torch peer: a function of the attr, the library and a tensor of each array returns the call."""

    def call(attr: KernelAttr, *arrays: AnyArray) -> Bound | None:
        import torch

        return function(attr, torch, *map(tensor, arrays))

    peer(schema, name="torch", narrow=narrow)(call)


def of_jax(schema: type[KernelAttr], function: Callable[..., Any]) -> None:
    """Register a JAX peer: a function of the attr, the library and its arrays, which are created before."""

    def call(attr: KernelAttr, *arrays: AnyArray) -> Bound | None:
        import jax

        jax.config.update("jax_enable_x64", True)
        if attr.operations() + sum(array.size for array in arrays) < MIN_JAX_WORK or 0 in (a.size for a in arrays):
            return None
        compiled = _jitted(function, attr)
        given = [jax.numpy.array(array) for array in inputs_of(attr, arrays)]
        return partial(call_and_wait, jax.block_until_ready, compiled, *given)

    peer(schema, name="jax")(call)


@functools.cache
def _jitted(function: Callable[..., Any], attr: KernelAttr) -> Callable[..., Any]:
    import jax

    compiled: Callable[..., Any] = jax.jit(partial(function, attr, jax))
    return compiled


def call_and_wait(wait: Callable[[Any], Any], function: Callable[..., Any], *inputs: Any) -> Any:
    """Call a function that returns before its result is there, and wait for the result."""
    return wait(function(*inputs))


def of_numba(schema: type[KernelAttr], expression: Callable[[KernelAttr], tuple[str, Mapping[str, Any]]]) -> None:
    """Register a numba loop over an expression of an attr's inputs and of its numbers by name."""

    def call(attr: KernelAttr, *arrays: AnyArray) -> Bound:
        named, constants = expression(attr)
        given = {known.name: known.is_number for known in schema.arrays}
        out = schema.arrays[-1].name
        for name, is_number in given.items():
            named = re.sub(rf"\b{name}\b", f"{name}[{0 if is_number else 'i'}]", named)
        lines = (
            f"def loop({', '.join([*given, *constants])}):",
            f"    for i in range({out}.size):",
            f"        {out}[i] = {named}",
        )
        return partial(_loop("\n".join(lines)), *arrays, *constants.values())

    peer(schema, name="numba")(call)


@functools.cache
def _loop(source: str) -> Callable[..., Any]:
    """Return the compiled function of a source text; numbers are divided as NumPy does."""
    import math

    import numba

    names: dict[str, Any] = {name: getattr(np, name) for name in FUNCTIONS}
    names |= {"erf": math.erf, "where": numba.njit(lambda true, one, other: one if true else other)}
    function: Callable[..., Any] = numba.njit(globals_of(source, names)["loop"], error_model="numpy")
    return function


def globals_of(source: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the globals after executing a source text with some names."""
    there = dict(names)
    exec(source, there)
    return there


def of_onnxruntime(
    schema: type[KernelAttr], node: Callable[..., tuple[str, Sequence[str], dict[str, Any]] | None]
) -> None:
    """Register a session of one operator: `node` returns its name, inputs and attributes, or None."""

    def call(attr: KernelAttr, *arrays: AnyArray) -> Bound | None:
        chosen = node(attr)
        if attr.fields().get("dtype") != "float32" or chosen is None or 0 in (a.size for a in arrays):
            return None
        operator, names, options = chosen
        known = [array.name for array in attr.signature().arrays if array.role != "out"]
        given = dict(zip(known, inputs_of(attr, arrays), strict=True))
        run = session(operator, {name: given[name] for name in names}, options)
        return None if run is None else partial(run, None, given)

    peer(schema, name="onnxruntime")(call)


def session(operator: str, inputs: Mapping[str, AnyArray], options: Mapping[str, Any]) -> Any:
    """Return the runner of a one-node model with as many threads as peers may use; None without the onnx package."""
    try:
        import onnx
    except ImportError:
        return None
    import onnxruntime

    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(operator, [*inputs], ["result"], **options)], operator,
        [helper.make_tensor_value_info(name, kind, array.shape) for name, array in inputs.items()],
        [helper.make_tensor_value_info("result", kind, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads.most()
    return onnxruntime.InferenceSession(model.SerializeToString(), chosen, providers=["CPUExecutionProvider"]).run
