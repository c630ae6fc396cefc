"""Queries of a schema's declaration: inputs, results, leading and trailing dimensions, options."""

import inspect
from typing import TYPE_CHECKING

from jitkernels.attrs.schema.signature import Argument

if TYPE_CHECKING:
    from jitkernels.attrs.schema.base import KernelAttr

AXIS = "axis"
SHAPE = "shape"
DTYPE = "dtype"


def inputs_of(schema: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call passes."""
    return [argument for argument in schema.arrays if argument.role == "in"]


def outputs_of(schema: "type[KernelAttr]") -> list[Argument]:
    """The arrays that an everyday call returns."""
    return [argument for argument in schema.arrays if argument.role == "out"]


def min_results(schema: "type[KernelAttr]") -> int:
    """The least number of arrays that an everyday call returns; a single one is not wrapped in a tuple."""
    return sum(argument.when is None for argument in outputs_of(schema))


def trailing_of(schema: "type[KernelAttr]") -> str | None:
    """The symbol of the trailing dimensions of a schema's inputs, or None."""
    return next((a.trailing for a in inputs_of(schema) if a.trailing is not None), None)


def specialised_extents_of(schema: "type[KernelAttr]") -> tuple[str, ...]:
    """The extents that may have specialised code where they are 1."""
    trailing = trailing_of(schema)
    return schema.singles if trailing is None else (*schema.singles, trailing)


def spread_of(schema: "type[KernelAttr]") -> set[str]:
    """The symbols of the leading (and trailing) dimensions."""
    return {e.symbols[0] for a in schema.arrays for e in a.extents if e.spread}


def integer_options_of(schema: "type[KernelAttr]") -> list[str]:
    """The options that are ints; shapes may refer to them."""
    known = schema.known_fields()
    return [name for name in schema.options if name in known and known[name].kind == "whole"]


def is_everyday(schema: "type[KernelAttr]") -> bool:
    """Whether inputs and options determine all extents, so that a call needs nothing else."""
    determined = {symbol for argument in inputs_of(schema) for extent in argument.extents for symbol in extent.symbols}
    determined |= {*integer_options_of(schema), *schema.derived} | (
        spread_of(schema) if SHAPE in schema.options else set()
    )
    required = {symbol for a in outputs_of(schema) for extent in a.extents for symbol in extent.symbols}
    fixed = {name for name, field in schema.known_fields().items() if field.is_integer}
    return bool(schema.arrays) and required | fixed <= determined


def parameters(schema: "type[KernelAttr]") -> inspect.Signature:
    """The arrays by name, optional ones with the default None, then options with their defaults, if any."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    result = [
        inspect.Parameter(a.name, kind, default=inspect.Parameter.empty if a.when is None else None)
        for a in inputs_of(schema)
    ]
    empty = inspect.Parameter.empty
    defaults = {name: getattr(schema, name, empty) for name in schema.known_fields()}
    defaults |= {AXIS: -1, SHAPE: empty, DTYPE: None}
    result += [inspect.Parameter(name, kind, default=defaults[name]) for name in schema.options]
    return inspect.Signature(result)
