"""Queries of a row's declaration: inputs, results, leading and trailing dimensions, options."""

import inspect
from typing import TYPE_CHECKING

from jitkernels.attrs.schema.signature import Argument

if TYPE_CHECKING:
    from jitkernels.attrs.schema.base import KernelAttr

AXIS = "axis"
SHAPE = "shape"
DTYPE = "dtype"


def inputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call passes."""
    return [argument for argument in row.arrays if argument.role == "in"]


def outputs_of(row: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call returns."""
    return [argument for argument in row.arrays if argument.role == "out"]


def min_results(row: "type[KernelAttr]") -> int:
    """The least number of arrays that an everyday call returns; a single one is not wrapped in a tuple."""
    return sum(argument.when is None for argument in outputs_of(row))


def trailing_of(row: "type[KernelAttr]") -> str | None:
    """The symbol of the trailing dimensions of a row's inputs, or None."""
    return next((a.trailing for a in inputs_of(row) if a.trailing is not None), None)


def specialised_extents_of(row: "type[KernelAttr]") -> tuple[str, ...]:
    """The extents that may have specialised code where they are 1."""
    trailing = trailing_of(row)
    return row.singles if trailing is None else (*row.singles, trailing)


def spread_of(row: "type[KernelAttr]") -> set[str]:
    """The symbols of the leading (and trailing) dimensions."""
    return {e.symbols[0] for a in row.arrays for e in a.extents if e.spread}


def integer_options_of(row: "type[KernelAttr]") -> list[str]:
    """The options that are ints; shapes may refer to them."""
    known = row.known_fields()
    return [name for name in row.options if name in known and known[name].kind == "whole"]


def is_everyday(row: "type[KernelAttr]") -> bool:
    """Whether inputs and options determine all extents, so that a call needs nothing else."""
    determined = {symbol for argument in inputs_of(row) for extent in argument.extents for symbol in extent.symbols}
    determined |= {*integer_options_of(row), *row.derived} | (spread_of(row) if SHAPE in row.options else set())
    required = {symbol for a in outputs_of(row) for extent in a.extents for symbol in extent.symbols}
    fixed = {name for name, field in row.known_fields().items() if field.is_integer}
    return bool(row.arrays) and required | fixed <= determined


def parameters(row: "type[KernelAttr]") -> inspect.Signature:
    """The arrays by name, optional ones with the default None, then options with their defaults, if any."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    result = [
        inspect.Parameter(a.name, kind, default=inspect.Parameter.empty if a.when is None else None)
        for a in inputs_of(row)
    ]
    empty = inspect.Parameter.empty
    defaults = {name: getattr(row, name, empty) for name in row.known_fields()}
    defaults |= {AXIS: -1, SHAPE: empty, DTYPE: None}
    result += [inspect.Parameter(name, kind, default=defaults[name]) for name in row.options]
    return inspect.Signature(result)
