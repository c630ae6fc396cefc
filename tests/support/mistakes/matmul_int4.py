"""MATMUL_INT4, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "matmul_int4": {
        "the upper half of a byte comes first": ("[packed & 15, packed >> 4]", "[packed >> 4, packed & 15]"),
        "weights have signs": ("both.astype(c.dtype) - middle", "(both ^ 8).astype(c.dtype) - middle"),
        "halves of a group lie behind one another": ("axis=-1", "axis=-2"),
        "zero points are those of the first group": ("zero[0][..., None]", "zero[0][..., :1, None]"),
        "scales are those of the first group": ("* scale[..., None]", "* scale[..., :1, None]"),
        "the last scale is lost": ("* scale[..., None]", "* np.roll(scale, 1, axis=-1)[..., None]"),
        "zero points are left out": ("if zero else", "if zero and attr.n == 1 else"),
    },
}  # fmt: skip


def matmul_int4(attr: Any, a: AnyArray, packed: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, c = rest
    both = np.stack([packed & 15, packed >> 4], axis=-1).reshape(attr.n, attr.groups, 2 * attr.half)
    middle: Any = zero[0][..., None].astype(c.dtype) if zero else c.dtype.type(8)
    weights = (both.astype(c.dtype) - middle) * scale[..., None]
    c[...] = a @ weights.reshape(attr.n, attr.k).T
