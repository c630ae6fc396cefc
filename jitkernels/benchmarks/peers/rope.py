"""Peers of ROPE in NumPy, torch and JAX."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.rope import RopeAttr, rotated
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, values, with_outs
from jitkernels.benchmarks.peers.compiled import of_jax


@equivalent(RopeAttr)
def rope(x: Any, cos: Any, sin: Any, interleaved: bool = False, out: Any = None) -> Any:
    result = rotated(np.asarray(x), np.asarray(cos), np.asarray(sin), interleaved=interleaved)
    return result if out is None else np.positive(result, out=out)


peer(RopeAttr)(lambda attr, x, cos, sin, y: partial(rope, x, cos, sin, attr.interleaved, y))


@peer(RopeAttr, name="torch")
def torch_rope(attr: RopeAttr, x: AnyArray, cos: AnyArray, sin: AnyArray, y: AnyArray) -> Bound:
    import torch

    a, result, half = torch.from_numpy(x), torch.from_numpy(y), attr.half
    if attr.interleaved:
        angles = torch.complex(torch.from_numpy(cos), torch.from_numpy(sin))
        pairs = torch.view_as_complex(a.reshape(*a.shape[:-1], half, 2))
        return partial(torch.mul, pairs, angles, out=torch.view_as_complex(result.reshape(*a.shape[:-1], half, 2)))
    both = [torch.from_numpy(np.concatenate([table, table], -1)) for table in (cos, sin)]

    def halves() -> None:  # the Hugging Face convention
        rotated = torch.cat((-a[..., half:], a[..., :half]), dim=-1)
        torch.add(a * both[0], rotated * both[1], out=result)

    return partial(halves)


@partial(of_jax, RopeAttr)
def jax_rope(attr: RopeAttr, jax: Any, x: Any, cos: Any, sin: Any) -> Any:
    if attr.interleaved:
        first, second = x[..., ::2], x[..., 1::2]
    else:
        first, second = x[..., : attr.half], x[..., attr.half :]
    rotated = first * cos - second * sin, second * cos + first * sin
    if attr.interleaved:
        return jax.numpy.stack(rotated, -1).reshape(x.shape)
    return jax.numpy.concatenate(rotated, -1)


@ordinary_calls(RopeAttr)
def rotations(elements: int) -> Iterator[OrdinaryCall]:
    half = 4 if elements >= 8 else 1
    positions = max(elements // (2 * half), 1)
    x, cos, sin = (values((positions, 2 * half)), values((positions, half)), values((positions, half))[::-1].copy())
    cube = values((3, positions, 2 * half))
    yield OrdinaryCall("2-D", (x, cos, sin))
    yield OrdinaryCall("3-D", (cube, cos, sin))
    yield OrdinaryCall("4-D", (cube[np.newaxis].copy(), cos, sin))
    yield OrdinaryCall("interleaved", (cube, cos, sin), {"interleaved": True})
    yield OrdinaryCall("interleaved by position", (x, cos, sin, True))
    yield from in_dtypes(x, fixed=(cos, sin))
    yield from in_layouts(cube, cos, sin)
    yield OrdinaryCall("heads behind positions", (values((positions, 3, 2 * half)).swapaxes(0, 1), cos, sin))
    yield OrdinaryCall("empty", (cube[:0], cos, sin))
    yield from with_outs((x, cos, sin, False), 4, x)
    yield OrdinaryCall("in place", (x, cos, sin), {"out": x})
