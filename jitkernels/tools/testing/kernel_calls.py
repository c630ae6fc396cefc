"""What an everyday call is given that comes to an attr."""

from typing import Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.attrs.roles import AXIS, SHAPE, inputs_of, trailing_of

MIDDLE = -2
"""The axis of arrays of three dimensions, the first and the last of which are any number of a caller's."""


def named(attr: KernelAttr, seed: int = 0) -> dict[str, Any]:
    """Arguments by name, in the order of the parameters; a call may still come to another attr."""
    row, fields, signature = type(attr), attr.fields(), attr.signature()
    arrays = dict(zip([array.name for array in signature.arrays], signature.sample(seed), strict=True))
    found = fields | {a.name: arrays[a.name] for a in inputs_of(row) if a.name in arrays}
    if trailing_of(row) is not None:
        found[AXIS] = MIDDLE
    if SHAPE in row.options:
        found[SHAPE] = signature.outputs[0].shape
    return {key: found[key] for key in row.parameters().parameters if key in found}
