"""MATMUL_INT8_WEIGHTS, and mutants of it."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "matmul_int8_weights": {
        "weights have no signs": ("q.astype(c.dtype)", "q.view(np.uint8).astype(c.dtype)"),
        "zero points are those of the first group": ("zero[0][..., None]", "zero[0][..., :1, None]"),
        "differences wrap": (
            "(q.astype(c.dtype) - middle)",
            "(q - (zero[0][..., None] if zero else q.dtype.type(0))).astype(c.dtype)",
        ),
        "zero points are added": ("c.dtype) - middle", "c.dtype) + middle"),
        "scales are those of the first group": ("* scale[..., None]", "* scale[..., :1, None]"),
        "the last scale is lost": ("* scale[..., None]", "* np.roll(scale, 1, axis=-1)[..., None]"),
        "the last weight of a group is lost": (
            "q.astype(c.dtype)",
            "np.where(np.arange(attr.size) < attr.size - (attr.size % 16 == 1), q, 0).astype(c.dtype)",
        ),
    },
}  # fmt: skip


def matmul_int8_weights(attr: Any, a: AnyArray, q: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, c = rest
    middle: Any = zero[0][..., None].astype(c.dtype) if zero else c.dtype.type(0)
    weights = (q.astype(c.dtype) - middle) * scale[..., None]
    c[...] = a @ weights.reshape(attr.n, attr.k).T
