"""Arguments of an everyday call that computes an attr."""

from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.schema_queries import AXIS, SHAPE, inputs_of, trailing_of

MIDDLE = -2
"""The axis of three-dimensional arrays, whose first and last extents are arbitrary."""


def named(attr: KernelAttr, seed: int = 0) -> dict[str, Any]:
    """Return arguments by name, in the order of the parameters; a call may still select another attr."""
    schema, fields, signature = type(attr), attr.fields(), attr.signature()
    arrays = dict(zip([array.name for array in signature.arrays], signature.sample(seed), strict=True))
    arguments = fields | {a.name: arrays[a.name] for a in inputs_of(schema) if a.name in arrays}
    if trailing_of(schema) is not None:
        arguments[AXIS] = MIDDLE
    if SHAPE in schema.options:
        arguments[SHAPE] = signature.outputs[0].shape
    return {key: arguments[key] for key in schema.parameters().parameters if key in arguments}
