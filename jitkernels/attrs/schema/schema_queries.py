"""What a row declares, as everyday calls see it: inputs, results, leading and trailing dimensions, options."""

import inspect
from typing import TYPE_CHECKING

from jitkernels.signature import Argument

if TYPE_CHECKING:
    from jitkernels.attrs.base import KernelAttr

AXIS = "axis"
SHAPE = "shape"
DTYPE = "dtype"


def inputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call is given."""
    return [argument for argument in row.arrays if argument.role == "in"]


def outputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call gives back."""
    return [argument for argument in row.arrays if argument.role == "out"]


def fewest_results(row: "type[KernelAttr]") -> int:
    """How many arrays an everyday call gives back at least; where it is one, that alone."""
    return sum(argument.when is None for argument in outputs_of(row))


def trailing_of(row: "type[KernelAttr]") -> str | None:
    """The symbol of the trailing dimensions of a row's inputs, if they may have any."""
    return next((a.trailing for a in inputs_of(row) if a.trailing is not None), None)


def singles_of(row: "type[KernelAttr]") -> tuple[str, ...]:
    """The extents for which there may be code of its own where they are 1."""
    trailing = trailing_of(row)
    return row.singles if trailing is None else (*row.singles, trailing)


def spread_of(row: "type[KernelAttr]") -> set[str]:
    """The symbols of leading dimensions."""
    return {e.symbols[0] for a in row.arrays for e in a.extents if e.spread}


def wholes_of(row: "type[KernelAttr]") -> list[str]:
    """The options that are ints, which shapes may have beside extents."""
    known = row.known_fields()
    return [name for name in row.options if name in known and known[name].kind == "whole"]


def is_everyday(row: "type[KernelAttr]") -> bool:
    """Whether inputs and options tell all extents, so that a call needs nothing but them."""
    told = {symbol for argument in inputs_of(row) for extent in argument.extents for symbol in extent.symbols}
    told |= {*wholes_of(row)} | (spread_of(row) if SHAPE in row.options else set())
    wanted = {symbol for a in outputs_of(row) for extent in a.extents for symbol in extent.symbols}
    fixed = {name for name, field in row.known_fields().items() if field.is_integer}
    return bool(row.arrays) and wanted | fixed <= told


def parameters(row: "type[KernelAttr]") -> inspect.Signature:
    """Arrays by name, those that may be missing with the default None, then options with theirs, if any."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [
        inspect.Parameter(a.name, kind, default=inspect.Parameter.empty if a.when is None else None)
        for a in inputs_of(row)
    ]
    empty = inspect.Parameter.empty
    defaults = {name: getattr(row, name, empty) for name in row.known_fields()}
    defaults |= {AXIS: -1, SHAPE: empty, DTYPE: None}
    found += [inspect.Parameter(name, kind, default=defaults[name]) for name in row.options]
    return inspect.Signature(found)
