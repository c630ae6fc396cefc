"""Export of a compiled function for one pattern of arguments as a bundle (`jitkernels.compiler.export`)."""

import types
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.compiler.capture.pytree.call_signature import FlatCall
from jitkernels.compiler.capture.pytree.flatten import Flattener
from jitkernels.compiler.capture.structured import field_views
from jitkernels.compiler.dispatch.specialization import Specialization, specialize
from jitkernels.compiler.export.manifest import Description
from jitkernels.compiler.export.write_bundle import write
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.regions import walk_nodes
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import BundleError
from jitkernels.selection.overrides import use


def exported(directory: Path | str, compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Description:
    """Write the bundle of a compiled function for calls with such arguments.

    Weights are arrays that the function refers to, attributes of objects, and Python's ints, which become part of the
    code. Only kernels of this package are used, even where a library is faster. Raises BundleError with the reason
    where no bundle is possible.
    """
    with build_lock, use(implementation="gen"):
        try:
            call = compiled._signature.flatten(args, kwargs)
        except UnsupportedError as error:
            raise BundleError(f"{name_of(compiled.__wrapped__)} falls back to NumPy: {error}") from None
        return _export(directory, compiled, call)


def name_of(function: Any) -> str:
    """The name of a bundle's files and of its C function."""
    name: str = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else name


def _export(directory: Path | str, compiled: Any, call: FlatCall) -> Description:
    function, name = compiled.__wrapped__, name_of(compiled.__wrapped__)
    leaves = [np.ascontiguousarray(leaf) if type(leaf) is np.ndarray and leaf.ndim else leaf for leaf in call.leaves]
    if field_views.has_structured_arrays(call.structure):
        raise BundleError(f"{name} takes structured arrays: expected an array for each field")
    specialization = specialize(call.structure, leaves, replace(compiled.config, profile=False))
    if specialization.graph is None:
        raise BundleError(f"{name} falls back to NumPy: {specialization.reason}")
    if call.locks:
        raise BundleError(f"{name} draws from a random generator, whose state is an object of this process")
    if any(node.operation == "native_call" for node in walk_nodes(specialization.graph)):
        raise BundleError(f"{name} calls a native function, whose address is one of this process")
    if specialization.has_foreign:
        raise BundleError(f"{name} takes arrays of another library: expected NumPy's")
    plan = specialization.plan
    gives_arrays = plan.is_tuple is not None and not plan.axes and set(plan.kinds) <= {"array", "scalar"}
    if not gives_arrays and not (plan.are_arguments and specialization.graph.writes):
        raise BundleError(
            f"{name}: expected a function that returns a new array, or a tuple of them, or writes to its arguments"
        )
    symbols = specialization.symbols_of(leaves)
    assert symbols is not None, "traced for these"
    flattener = Flattener(compiled.static_argnames)
    if type(function) is types.FunctionType:
        flattener.function(function)
    inputs = _graph_inputs(specialization, leaves, compiled._names(call), len(flattener.leaves))
    return write(Path(directory), name, specialization.program, inputs, symbols)


def _graph_inputs(
    specialization: Specialization, leaves: Sequence[Any], names: Sequence[str], captured: int
) -> list[tuple[str, Any, bool]]:
    """The inputs of the graph: names, examples, and whether they are weights."""
    inputs = [
        (name, leaf, i < captured or "." in name or type(leaf) is int)
        for i, (name, leaf) in enumerate(zip(names, leaves, strict=True))
    ]
    inputs += [(f"constant_{i}", value, True) for i, value in enumerate(specialization.constants)]
    written = {name for i, (name, _, is_weight) in enumerate(inputs) if is_weight and i in specialization.written}
    if written:
        raise BundleError(
            f"{', '.join(sorted(written))}: weights are changed: expected a function that only reads them"
        )
    return inputs
