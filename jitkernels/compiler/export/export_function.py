"""A compiled function for one kind of arguments as a bundle (`jitkernels.bundles`)."""

import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.bundles.description import Description
from jitkernels.bundles.writing import write
from jitkernels.errors import BundleError
from jitkernels.frontends import specialisation as specialisations
from jitkernels.frontends.arguments import Flattener
from jitkernels.frontends.specialisation import Specialisation
from jitkernels.graph.config import JitConfig
from jitkernels.graph.construct import UnknownError
from jitkernels.locks import making
from jitkernels.pins import use


def exported(
    directory: Path | str,
    function: Any,
    taken_apart: Callable[[], tuple[Any, list[Any], list[str]]],
    config: JitConfig,
    static_names: tuple[str, ...] = (),
) -> Description:
    """Write the bundle; `taken_apart` gives the structure of a call, its leaves and their names.

    Weights are what the function refers to, Python's ints, which are part of the code, and attributes of objects.
    Kernels are ours, whatever library may be faster here. Raises BundleError with the reason where there can be none.
    """
    with making, use(implementation="gen"):
        try:
            structure, leaves, names = taken_apart()
        except UnknownError as error:
            raise BundleError(f"{named(function)} is left to NumPy: {error}") from None
        return _exported(directory, function, structure, leaves, names, config, static_names)


def named(function: Any) -> str:
    """The name of a bundle's files and of its function in C."""
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
    whole = [np.ascontiguousarray(one) if type(one) is np.ndarray and one.ndim else one for one in leaves]
    made = specialisations.made(function, structure, whole, replace(config, profile=False))
    name = named(function)
    if made.graph is None:
        raise BundleError(f"{name} is left to NumPy: {made.reason}")
    if made.has_foreign:
        raise BundleError(f"{name} takes arrays of another library: expected NumPy's")
    gives_arrays = made.plan.is_tuple is not None and set(made.plan.kinds) <= {"array", "scalar"}
    if not gives_arrays and not (made.plan.are_arguments and made.graph.writes):
        raise BundleError(
            f"{name}: expected a function that gives new arrays, one or in a tuple, or writes to its arguments"
        )
    values = made.values(whole)
    assert values is not None, "traced for these"
    flattener = Flattener(static_names)
    if type(function) is types.FunctionType:
        flattener.function(function)
    given = _given(made, whole, names, len(flattener.leaves))
    return write(Path(directory), name, made.program, given, values)


def _given(
    made: Specialisation, leaves: Sequence[Any], names: Sequence[str], captured: int
) -> list[tuple[str, Any, bool]]:
    """The inputs of the graph: names, examples, and whether they are weights."""
    found = [
        (name, leaf, i < captured or "." in name or type(leaf) is int)
        for i, (name, leaf) in enumerate(zip(names, leaves, strict=True))
    ]
    found += [(f"constant_{i}", one, True) for i, one in enumerate(made.constants)]
    written = {name for i, (name, _, is_weight) in enumerate(found) if is_weight and i in made.written}
    if written:
        raise BundleError(f"{', '.join(sorted(written))}: weights are changed, which no bundle can do")
    return found
