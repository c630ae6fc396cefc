"""Check what a schema declares when its class is created: arrays, fields and options must be consistent."""

import sys
from typing import TYPE_CHECKING

from jitkernels.attrs.schema.schema_queries import AXIS, DTYPE, SHAPE, inputs_of, outputs_of
from jitkernels.attrs.schema.signature import Argument
from jitkernels.errors import RegistrationError

if TYPE_CHECKING:
    from jitkernels.attrs.schema.base import KernelAttr


def check_declaration(schema: "type[KernelAttr]") -> None:
    """Raise RegistrationError for arrays and options that are inconsistent with the fields of a schema."""
    fields = schema.known_fields()

    def require(what: str, name: str, *kinds: str) -> None:
        if name not in fields or fields[name].kind not in kinds:
            raise RegistrationError(
                f"{schema.__name__}: {what}: expected the name of a field of type {kinds[0]}, got {name!r}"
            )

    names = [argument.name for argument in schema.arrays]
    if len(names) != len(set(names)):
        raise RegistrationError(f"{schema.__name__}: arrays: expected different names, got {', '.join(names)}")
    for argument in schema.arrays:
        label = f"array {argument.name}"
        for extent in argument.extents:
            for symbol in (s for s in extent.symbols if s not in schema.derived):
                require(label, symbol, "int", "whole")
        for flag in (argument.when, argument.transposed):
            if flag is not None:
                require(label, flag, "bool")
        flags = {None, *(a.when for a in inputs_of(schema)), *schema.options}
        if argument.role == "out" and argument.when not in flags:
            raise RegistrationError(
                f"{schema.__name__}: {label}: when: expected the flag of an input or an option, got {argument.when!r}"
            )
        if argument.read is not None:
            require(label, argument.read, "float")
        if argument.dtype is None or argument.unless is not None:
            require(label, "dtype", "dtype")
        if argument.unless is not None:
            require(label, argument.unless, "bool")
        if argument.picks is not None:
            _check_picks(schema, argument)
        if argument.pitch is not None and (argument.role != "out" or argument.pitch not in schema.derived):
            raise RegistrationError(
                f"{schema.__name__}: {label}: pitch: expected a derived integer, of an output, got {argument.pitch!r}"
            )
    if outputs_of(schema) and outputs_of(schema)[0].when is not None:
        raise RegistrationError(f"{schema.__name__}: arrays: expected a first output that is always present")
    _check_spread(schema)
    for name in schema.floats:
        require("floats", name, "float")
    for name in schema.options:
        if name not in fields and name not in (AXIS, SHAPE):
            raise RegistrationError(f"{schema.__name__}: options: expected fields or 'axis', got {name!r}")
    leads = bool(schema.arrays) and all(argument.spreads for argument in schema.arrays)
    if {SHAPE, DTYPE} & {*schema.options} and (inputs_of(schema) or not leads):
        raise RegistrationError(
            f"{schema.__name__}: options: expected 'shape' and 'dtype' where there are no inputs and all results have "
            "leading dimensions"
        )


def _check_spread(schema: "type[KernelAttr]") -> None:
    """Raise RegistrationError unless a call can distinguish leading from trailing dimensions."""
    for argument in schema.arrays:
        positions = [i for i, extent in enumerate(argument.extents) if extent.spread]
        if any(i not in (0, len(argument.extents) - 1) for i in positions):
            raise RegistrationError(
                f"{schema.__name__}: array {argument.name}: expected '*' at the first and the last extent alone, got "
                f"{argument.shape!r}"
            )
    both = [a for a in inputs_of(schema) if a.trailing is not None and a.spreads]
    alone = [a for a in inputs_of(schema) if a.trailing is not None and not a.spreads]
    symbols = {a.trailing for a in schema.arrays if a.trailing is not None}
    axis = AXIS in schema.options
    if len(symbols) > 1 or (both and not axis) or (alone and (both or axis)) or (symbols and not (both or alone)):
        raise RegistrationError(
            f"{schema.__name__}: arrays: expected one kind of trailing dimensions, and the option 'axis' where there "
            "are leading ones as well, and nowhere else"
        )
    if both and len(both[0].fixed) != 1:
        raise RegistrationError(
            f"{schema.__name__}: array {both[0].name}: expected one extent between leading and trailing ones, got "
            f"{both[0].shape!r}"
        )


def _check_picks(schema: "type[KernelAttr]", argument: Argument) -> None:
    """Raise RegistrationError unless an index array can index the rows of the input that `picks` names."""
    picked = [a for a in inputs_of(schema) if a.name == argument.picks and a is not argument]
    rows = picked[0].extents[0] if picked else None
    uses = [e for a in schema.arrays for e in a.extents if rows and set(rows.symbols) & set(e.symbols)]
    plain = rows is not None and len(rows.symbols) == rows.factor == 1 and len(uses) == 1
    if argument.dtype is None or not plain or any(e.spread for a in picked for e in a.extents):
        raise RegistrationError(
            f"{schema.__name__}: array {argument.name}: picks: expected the name of an input whose first extent is a "
            "field that no other extent has, no leading dimension, and integers to name its rows, got "
            f"{argument.picks!r}"
        )


def is_of_failed_import(known: "type[KernelAttr]", again: "type[KernelAttr]") -> bool:
    """Whether a module that declares a schema again has failed before, as by an interrupt: Python forgot it then."""
    is_same = (known.__module__, known.__qualname__) == (again.__module__, again.__qualname__)
    module = sys.modules.get(known.__module__)
    return is_same and "<locals>" not in known.__qualname__ and getattr(module, known.__name__, None) is not known
