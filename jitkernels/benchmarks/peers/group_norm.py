"""Peers of GROUP_NORM in NumPy and torch."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.group_norm import GroupNormAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, shape, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_torch, stored_tensor


@equivalent(GroupNormAttr)
def group_norm(x: Any, scale: Any = None, bias: Any = None, groups: int = 1, eps: float = 1e-5, out: Any = None) -> Any:
    x = np.asarray(x)
    flat = x.reshape(x.shape[0] * groups, math.prod(x.shape[1:]) // groups)
    z = (flat - flat.mean(axis=-1, keepdims=True)) / np.sqrt(flat.var(axis=-1, keepdims=True) + eps)
    z = z.reshape(x.shape)
    if scale is None:
        return np.positive(z, out=out)
    column = (-1,) + (1,) * (x.ndim - 2)
    return np.add(z * np.reshape(scale, column), np.reshape(bias, column), out=out)


@peer(GroupNormAttr)
def numpy_group_norm(attr: GroupNormAttr, x: AnyArray, *rest: AnyArray) -> Bound:
    *affine, y = rest
    scale, bias = affine or (None, None)
    return partial(group_norm, x, scale, bias, attr.groups, attr.eps, y)


@partial(of_torch, GroupNormAttr)
def torch_group_norm(attr: GroupNormAttr, torch: Any, x: Any, *rest: Any) -> Bound | None:
    if x.numel() <= attr.groups:  # torch rejects groups of one element
        return None
    *affine, result = rest
    scale, bias = affine or (None, None)
    return stored_tensor(result, torch.nn.functional.group_norm, x, attr.groups, scale, bias, attr.eps)


@ordinary_calls(GroupNormAttr)
def groups(elements: int) -> Iterator[OrdinaryCall]:
    y = values(shape(elements, 2)).T.copy()
    each = values(y.shape[1]), values(y.shape[1]) + 1
    yield OrdinaryCall("2-D", (y, *each))
    yield OrdinaryCall("without scale", (y,))
    yield OrdinaryCall("groups=2", (y, *each), {"groups": 2})
    yield OrdinaryCall("eps", (y, *each), {"eps": 1e-3})
    for dimensions in (3, 4, 5):
        cube = values(shape(elements, dimensions))
        scale = values(cube.shape[1])
        yield OrdinaryCall(f"{dimensions}-D", (cube, scale, scale + 1))
        yield OrdinaryCall(f"{dimensions}-D, Fortran", (np.asfortranarray(cube), scale, scale + 1))
    yield from in_dtypes(y, fixed=each, bools=False)
    yield from in_layouts(y, fixed=each)
    yield OrdinaryCall("empty", (y[:0], *each))
    yield from with_outs((y, *each, 1, 1e-5), 5, y)
    yield OrdinaryCall("in place", (y, *each), {"out": y})
