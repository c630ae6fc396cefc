"""Copies that transpose the last two axes: calls of the kernel TRANSPOSE in place of loop nests.

A loop nest has one lane loop, so that either its loads or its stores are strided. The kernel transposes tiles in
registers: NCHW images of 3 channels, or the shuffle of channels in groups, take a quarter to a seventh of the time.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jitkernels.attrs.transpose_gather_scatter import TransposeAttr
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same, value_of
from jitkernels.compiler.schedule.kernel_step import KernelCall, NamedKernel
from jitkernels.compiler.schedule.loop_nest import LoopNest

MIN_TRANSPOSED_ELEMENTS = 1024
"""Elements of the traced call up to which a loop nest takes about as long as the call of a kernel."""
DTYPES = {4: "float32", 8: "float64"}
"""The dtype that TRANSPOSE moves elements as, by their size."""


class Dimension(NamedTuple):
    """A dimension of a copy: its extent, and the strides of the source and of the result."""

    extent: Number
    source: Number
    result: Number


class TransposedCopy(NamedTuple):
    """The call of the kernel, and where its operand and its result lie."""

    call: KernelCall
    arrays: dict[Node, StridedArray]


def transposed_copy(nest: LoopNest, arrays: Mapping[Node, StridedArray]) -> TransposedCopy | None:
    """Return the kernel call that does what a nest does; None where it is no transposition, or a small one.

    1. The nest has one output, a copy of one array through one access map.
    2. The result is dense. Its dimensions, adjacent ones collapsed, are ``batch? n rows``.
    3. The source is dense in the order ``batch? rows n``, and another array.
    """
    if len(nest.stores) != 1:
        return None
    (store,) = nest.stores
    region, root = store.region, store.region.root
    if len(region.leaves) != 1 or any(node.operation != "view" for node in region.nodes):
        return None
    (leaf,) = region.leaves
    maps = [*region.access_maps[leaf].values()]
    if len(maps) != 1 or leaf.dtype != root.dtype or leaf not in arrays or not leaf.ndim or region.gathered:
        return None
    source, result = arrays[leaf].region(maps[0], root.ndim), arrays[store.target]
    if store.target_map is not None:
        result = result.region(store.target_map, root.ndim)
    if source.word == result.word:
        return None
    dimensions = _collapsed(root.shape, source.strides, result.strides)
    dtype = DTYPES.get(np.dtype(root.dtype).itemsize)
    if dtype is None or np.dtype(root.dtype).kind == "c" or dimensions is None or len(dimensions) not in (2, 3):
        return None
    (columns, rows), batch = dimensions[-2:], dimensions[0].extent if len(dimensions) == 3 else 1
    n, height = columns.extent, rows.extent
    if not same(columns.source, 1) or not same(rows.source, n):
        return None
    if len(dimensions) == 3 and not same(dimensions[0].source, height * n):
        return None
    values = {"batch": batch, "rows": height, "n": n}
    attr = TransposeAttr(**{name: value_of(value) for name, value in values.items()}, dtype=dtype)
    if attr.operations() < MIN_TRANSPOSED_ELEMENTS:
        return None
    kernel = NamedKernel(attr, values, (), serves_all_sizes=True)
    if kernel.external is None:
        return None
    node = Node("kernel", (leaf,), leaf.dtype, root.shape, {"function": kernel})
    places = {leaf: source, store.target: result}
    return TransposedCopy(KernelCall(node, [store.target]), places)


def _collapsed(shape: Sequence[Number], source: Sequence[Number], result: Sequence[Number]) -> list[Dimension] | None:
    """Return the dimensions in the order of a dense result, adjacent ones collapsed; None where it has gaps."""
    listed = [Dimension(*each) for each in zip(shape, source, result, strict=True) if not same(each[0], 1)]
    listed.sort(key=lambda dimension: -value_of(dimension.result))
    collapsed: list[Dimension] = []
    expected: Number = 1
    for dimension in reversed(listed):
        if not same(dimension.result, expected):
            return None
        expected = expected * dimension.extent
        inner = collapsed[0] if collapsed else None
        if inner is not None and same(dimension.source, inner.extent * inner.source):
            collapsed[0] = Dimension(dimension.extent * inner.extent, inner.source, inner.result)
        else:
            collapsed.insert(0, dimension)
    return collapsed
