"""Export of a compiled function for one pattern of arguments as a bundle (`jitkernels.compiler.export`)."""

import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.compiler.capture.pytree.flatten import Flattener
from jitkernels.compiler.dispatch import specialization as specialisations
from jitkernels.compiler.dispatch.specialization import Specialisation
from jitkernels.compiler.export.manifest import Description
from jitkernels.compiler.export.write_bundle import write
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.core.fork_locks import making
from jitkernels.errors import BundleError
from jitkernels.selection.overrides import use


def exported(
    directory: Path | str,
    function: Any,
    taken_apart: Callable[[], tuple[Any, list[Any], list[str]]],
    config: JitConfig,
    static_names: tuple[str, ...] = (),
) -> Description:
    """Write the bundle; `taken_apart` returns the structure of a call, its leaves and their names.

    Weights are arrays that the function refers to, attributes of objects, and Python's ints, which become part of the
    code. Only kernels of this package are used, even where a library is faster. Raises BundleError with the reason
    where no bundle is possible.
    """
    with making, use(implementation="gen"):
        try:
            structure, leaves, names = taken_apart()
        except UnknownError as error:
            raise BundleError(f"{named(function)} is left to NumPy: {error}") from None
        return _exported(directory, function, structure, leaves, names, config, static_names)


def named(function: Any) -> str:
    """The name of a bundle's files and of its C function."""
    name: str = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else name


def _exported(
    directory: Path | str,
    function: Any,
    structure: Any,
    leaves: Sequence[Any],
    names: Sequence[str],
    config: JitConfig,
    static_names: tuple[str, ...],
) -> Description:
    contiguous = [np.ascontiguousarray(leaf) if type(leaf) is np.ndarray and leaf.ndim else leaf for leaf in leaves]
    specialization = specialisations.made(function, structure, contiguous, replace(config, profile=False))
    name = named(function)
    if specialization.graph is None:
        raise BundleError(f"{name} is left to NumPy: {specialization.reason}")
    if specialization.has_foreign:
        raise BundleError(f"{name} takes arrays of another library: expected NumPy's")
    gives_arrays = specialization.plan.is_tuple is not None and set(specialization.plan.kinds) <= {"array", "scalar"}
    if not gives_arrays and not (specialization.plan.are_arguments and specialization.graph.writes):
        raise BundleError(
            f"{name}: expected a function that returns a new array, or a tuple of them, or writes to its arguments"
        )
    values = specialization.values(contiguous)
    assert values is not None, "traced for these"
    flattener = Flattener(static_names)
    if type(function) is types.FunctionType:
        flattener.function(function)
    inputs = _given(specialization, contiguous, names, len(flattener.leaves))
    return write(Path(directory), name, specialization.program, inputs, values)


def _given(
    specialization: Specialisation, leaves: Sequence[Any], names: Sequence[str], captured: int
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
