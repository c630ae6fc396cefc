"""The dispatcher behind ``jk.softmax`` and its like: from any ordinary call to a kernel's entry, in machine code.

One object serves every everyday function; what a function takes stands in its table (`jitkernels.native.layout`).
A call passes through: arguments to their slots, inputs to operands (lists and numbers through NumPy's own
conversions), one dtype, extents from shapes, a context by (dtype, options, size class), results allocated or checked,
then the entry. Operands that do not lie as the kernel wants them (other dtypes, strides, broadcasts, an axis in the
middle) pass through a buffer in blocks that stay in the first-level cache. Whatever is wrong or rare goes to Python,
which raises the error or does the same (`jitkernels.attrs.binding`); nothing has been written then.

Functions call those of other files by name. What the calls of most programs never need is in objects of its own
(`jitkernels.native.parts`), which are built, or loaded, when a call first needs them.
"""

from jitkernels.native.dispatch import (
    blocks,
    calls,
    contexts,
    copies,
    inputs,
    leading,
    mixed,
    options,
    picked,
    plain,
    relaid,
    results,
    runs,
    shapes,
    straight,
    transfers,
)

MODULES = (
    calls,
    plain,
    mixed,
    contexts,
    inputs,
    options,
    shapes,
    leading,
    results,
    copies,
    picked,
    blocks,
    transfers,
    straight,
    relaid,
    runs,
)
FUNCTIONS = tuple(function for module in MODULES for function in module.FUNCTIONS)
INLINED = (
    "part", "sorted_into", "plain", "whole", "finished", "called_for", "served", "operand", "record", "context_of",
    "hashed", "class_of", "due", "alike", "lies", "apart", "result_of", "called_briefly", "invoked", "number_at",
    "width_of", "is_wide", "is_sequence", "items_of", "readable_kind", "target_of", "pair_of",
)  # fmt: skip
"""What is small, or called in one place of every call."""
