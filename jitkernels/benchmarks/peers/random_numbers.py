"""Peers of UNIFORM and NORMAL in NumPy and torch."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.random_numbers import NormalAttr, RandomAttr, UniformAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import shape, strided
from jitkernels.benchmarks.peers.compiled import of_torch


def _drawn(name: str, extents: Any, seed: int, offset: int, dtype: Any, out: Any) -> Any:
    bits = np.random.Philox(key=seed)
    generator = np.random.Generator(bits)
    if offset:
        bits.advance(offset)
    draw = getattr(generator, name)
    if out is None:
        return draw(extents, dtype=dtype or np.float64)
    if out.flags.c_contiguous:
        return draw(extents, dtype=out.dtype, out=out)
    out[...] = draw(extents, dtype=out.dtype)
    return out


@equivalent(UniformAttr)
def uniform(shape: Any, seed: int = 0, offset: int = 0, dtype: Any = None, out: Any = None) -> Any:
    return _drawn("random", shape, seed, offset, dtype, out)


@equivalent(NormalAttr)
def normal(shape: Any, seed: int = 0, offset: int = 0, dtype: Any = None, out: Any = None) -> Any:
    return _drawn("standard_normal", shape, seed, offset, dtype, out)


def numpy_random(attr: RandomAttr, y: AnyArray) -> Bound:
    """Use NumPy's default generator, which is faster than its Philox."""
    generator = np.random.default_rng(attr.seed)
    draw = generator.random if isinstance(attr, UniformAttr) else generator.standard_normal
    return partial(draw, None, y.dtype.type, y)


for _schema in (UniformAttr, NormalAttr):
    peer(_schema)(numpy_random)
    of_torch(_schema, lambda attr, _, y: partial(y.uniform_ if isinstance(attr, UniformAttr) else y.normal_))


def draws(elements: int) -> Iterator[OrdinaryCall]:
    extents = shape(elements, 2)
    yield OrdinaryCall("one dimension", (elements,))
    yield OrdinaryCall("2-D", (extents,))
    yield OrdinaryCall("seed", (elements,), {"seed": 7})
    yield OrdinaryCall("seed, offset", (extents,), {"seed": 7, "offset": 1000})
    yield OrdinaryCall("by position", (elements, 7, 1000))
    for dtype in ("float32", "float64", np.float32, np.dtype(np.float64)):
        yield OrdinaryCall(f"dtype {dtype!r}", (elements,), {"dtype": dtype})
    for dtype in ("float32", "float64"):
        room = np.zeros(extents, dtype)
        yield OrdinaryCall(f"out {dtype}", (extents,), {"out": room})
        yield OrdinaryCall(f"out {dtype} strided", (extents,), {"out": strided(room)})
    yield OrdinaryCall("a number", ((),))
    yield OrdinaryCall("empty", (0,))


ordinary_calls(UniformAttr)(draws)
ordinary_calls(NormalAttr)(draws)
