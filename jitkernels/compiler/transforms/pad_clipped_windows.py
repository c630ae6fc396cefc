"""Windows that end at the edge of their array become whole windows of a padded copy of the array.

``for i in range(n): out[i] = x[max(i - r, 0) : i + r + 1].sum()`` reads fewer elements at both ends, so the extent of
its view differs from iteration to iteration. In a copy of `x` with r zeros on each side all windows have one extent,
and the loop is vectorized as one over windows that never leave their array.

1. The view has in some dimensions the start ``max(s, 0)``, the stop ``min(e, extent)``, or both, for s and e that
   depend on loops; its array is none that these loops write.
2. All that reads it are reductions over these dimensions, or elementwise operations below them, and there is a number
   to pad with which they ignore: zero in a sum of squares, or infinity in a minimum.
3. No padding is longer than its dimension, and windows begin at many of the elements, so that the copy costs little.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_proofs import larger, smaller
from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.regions import LoopParts, parameter, regions_of
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, is_at_least_now, is_loop_variant, same, same_shape
from jitkernels.compiler.transforms.reduction_identity import identity

KINDS = frozenset({"sum", "min", "max", "any", "all"})
"""Reductions that ignore their identity wherever it stands."""
MAX_ELEMENTS_PER_WINDOW = 4
"""Elements of a dimension for each window that begins in it."""


class _Window(NamedTuple):
    """The window of which a view shows a part: its map from the array, and its extents."""

    index_map: IndexMap
    extents: tuple[Number, ...]
    paddings: tuple[tuple[Number, Number], ...]


class _Found(NamedTuple):
    """A view that is clipped, its window, the array of the graph whose part it is, and what the padding holds."""

    window: _Window
    array: Node
    fill: Any

    @property
    def key(self) -> Any:
        """Equal for views that can read one copy."""
        pads = tuple(symbolic_dims.key_of(one) for pair in self.window.paddings for one in pair)
        return self.array, self.fill, repr(self.fill), pads


def pad_clipped_windows(graph: Graph) -> Graph:
    """Let the loops of a graph read padded copies of arrays of which they reduce clipped windows."""
    if not any(node.operation == "loop" for node in graph):
        return graph
    return transformed(graph, lambda node: with_whole_windows(node) if node.operation == "loop" else node)


def with_whole_windows(loop: Node) -> Node:
    """A loop that reads padded copies of the arrays of which it, or a loop in it, reduces clipped windows."""
    parts = LoopParts(loop)
    found = _windows_in(parts.body, dict(zip(parts.captured_parameters, parts.captured, strict=True)))
    copies: dict[Any, Node] = {}
    for one in found.values():
        if one.key not in copies:
            copies[one.key] = _padded(one)
    return _with_copies(loop, copies, found) if found else loop


def _windows_in(body: Graph, arrays: Mapping[Node, Node]) -> dict[Node, _Found]:
    """The clipped views of a loop's body, and of the loops in it. `arrays`: of the graph, by parameter."""
    found: dict[Node, _Found] = {}
    for node in body:
        if node.operation == "loop":
            parts = LoopParts(node)
            captured = zip(parts.captured_parameters, parts.captured, strict=True)
            inside = {inner: arrays[outer] for inner, outer in captured if outer in arrays}
            found |= _windows_in(parts.body, inside)
        elif node.operation == "view" and node.inputs[0] in arrays and any(map(is_loop_variant, node.shape)):
            window = _window_of(node)
            fill = None if window is None else _fill_of(node, window, body)
            if window is not None and fill is not None:
                found[node] = _Found(window, arrays[node.inputs[0]], fill)
    return found


def _window_of(view: Node) -> _Window | None:
    """The window that a view shows a part of; None where it shows all of it, or no window is known."""
    index_map, extents = [], [*view.shape]
    paddings: list[tuple[Number, Number]] = []
    for (start, steps), most in zip(view.options["map"], view.inputs[0].shape, strict=True):
        if len(steps) != 1 or steps[0][1] != 1 or not any(map(is_loop_variant, (start, view.shape[steps[0][0]]))):
            if any(is_loop_variant(view.shape[dimension]) for dimension, _ in steps):
                return None
            index_map.append((start, steps))
            paddings.append((0, 0))
            continue
        ((dimension, _),) = steps
        first, stop = _unclipped(start, 0, larger), _unclipped(start + view.shape[dimension], most, smaller)
        pads = [dim_bounds.limit(one, is_upper=True) for one in (start - first, stop - start - view.shape[dimension])]
        if is_loop_variant(stop - first) or any(one is None for one in pads) or not _is_worth(first, most, pads):
            return None
        index_map.append((first, steps))
        paddings.append((pads[0], pads[1]))
        extents[dimension] = stop - first
    is_clipped = any(not same(one, 0) for pair in paddings for one in pair)
    return _Window(tuple(index_map), tuple(extents), tuple(paddings)) if is_clipped else None


def _unclipped(bound: Number, edge: Number, clip: Any) -> Number:
    """The bound of a slice whose maximum or minimum with the edge it is; itself where it is none."""
    if not isinstance(bound, Extent):
        return bound
    for monomial in bound.terms:
        if len(monomial) == 1 and monomial[0].operation == "max":
            clamp = symbolic_dims.polynomial({monomial: 1}, bound.scope)
            for other in (bound - clamp, bound + clamp, edge + monomial[0].left, edge - monomial[0].left):
                if same(clip(other, edge), bound):
                    return other
    return bound


def _is_worth(first: Number, most: Number, pads: Sequence[Number]) -> bool:
    """Whether paddings are shorter than the dimension, and the loops have a window for few elements of it."""
    low, high = (dim_bounds.limit(first, is_upper=is_upper) for is_upper in (False, True))
    if low is None or high is None:
        return False
    windows = high - low + 1
    return is_at_least_now(windows * MAX_ELEMENTS_PER_WINDOW - most, 0) and all(
        is_at_least_now(most - one, 0) for one in pads
    )


def _fill_of(view: Node, window: _Window, body: Graph) -> Any:
    """What reductions of the view ignore; None where it is read by something else, or nothing is ignored by all."""
    clipped = {axis for axis, (new, old) in enumerate(zip(window.extents, view.shape, strict=True)) if new is not old}
    fills = [identity(kind, view.dtype, zero=-0.0) for kind in ("sum", "min", "max", "any", "all")]
    return next((fill for fill in dict.fromkeys(fills) if _is_ignored(view, fill, clipped, body)), None)


def _is_ignored(view: Node, fill: Any, clipped: Collection[int], body: Graph) -> bool:
    """Whether no result of a body depends on padding with `fill` in these dimensions of a view."""
    padded: dict[Node, tuple[Any, Collection[int]]] = {view: (fill, clipped)}
    for node in body:
        if node is view or not any(operand in padded for operand in node.inputs):
            continue
        if node.operation == "reduce" and node.options["kind"] in KINDS:
            value, dims = padded[node.inputs[0]]
            kind, axes = node.options["kind"], node.options["axes"]
            if value != identity(kind, node.inputs[0].dtype):
                return False
            left = {dim - sum(axis < dim for axis in axes) for dim in dims if dim not in axes}
            if left:
                padded[node] = identity(kind, node.dtype), left
            continue
        value = _value_of(node, padded)
        if value is None:
            return False
        padded[node] = value, _dims_of(node, padded)
    return not any(root in padded for root in body.roots)


def _dims_of(node: Node, padded: Mapping[Node, tuple[Any, Collection[int]]]) -> Collection[int]:
    """The dimensions of an elementwise node that are padded."""
    return {
        dim + node.ndim - operand.ndim for operand in node.inputs if operand in padded for dim in padded[operand][1]
    }


def _value_of(node: Node, padded: Mapping[Node, tuple[Any, Collection[int]]]) -> Any:
    """What a node is where its operands are padded; None where that is not known."""
    scalar = OPERATIONS[node.operation].scalar
    operands = []
    for operand in node.inputs:
        if operand in padded:
            operands.append(np.dtype(operand.dtype).type(padded[operand][0]))
        elif operand.operation == "constant":
            operands.append(np.dtype(operand.dtype).type(operand.options["value"]))
        else:
            return None
    with np.errstate(all="ignore"):
        if node.operation == "cast":
            return operands[0].astype(node.dtype).item()
        return None if scalar is None else np.asarray(scalar.numpy(*operands)).item()


def _padded(found: _Found) -> Node:
    array, paddings = found.array, found.window.paddings
    shape = [low + extent + high for (low, high), extent in zip(paddings, array.shape, strict=True)]
    full = builder.broadcast_to(builder.constant(found.fill, array.dtype), shape)
    place = tuple((low, ((dimension, 1),)) for dimension, (low, _) in enumerate(paddings))
    return Node("update", (full, array), array.dtype, shape, {"map": place, "extents": tuple(array.shape)})


def _with_copies(loop: Node, copies: Mapping[Any, Node], found: Mapping[Node, _Found]) -> Node:
    """The loop with copies as further captured operands, of which its views show whole windows."""
    own = {key: parameter(copy.dtype, copy.shape, 0) for key, copy in copies.items()}
    new: dict[str, Graph] = {}
    for name in ("condition", "body"):
        region = loop.options[name]
        wide = Graph((*region.inputs, *own.values()), region.outputs, checks=region.checks)
        new[name] = wide if name == "condition" else _rewritten(wide, own, found)
    options = {**loop.options, **new}
    return Node("loop", (*loop.inputs, *copies.values()), loop.dtype, loop.shape, options)


def _rewritten(body: Graph, own: Mapping[Any, Node], found: Mapping[Node, _Found]) -> Graph:
    """A body whose clipped views, and those of the loops in it, show windows of the copies."""
    new: dict[Node, Node] = {}
    for node in body:
        operands = [new[operand] for operand in node.inputs]
        if node in found:
            new[node] = _whole_window(own[found[node].key], found[node].window)
        elif node.operation == "loop" and any(view in found for view in _views_in(node)):
            inner = node.replace_inputs(operands)
            new[node] = _with_copies(inner, own, found)
        else:
            new[node] = _resized(node, operands)
    return Graph(body.inputs, tuple(new[one] for one in body.outputs), checks=tuple(new[one] for one in body.checks))


def _resized(node: Node, operands: Sequence[Node]) -> Node:
    """A node of other operands, which may be longer than its own."""
    if all(
        one is other or same_shape(one.shape, other.shape) for one, other in zip(operands, node.inputs, strict=True)
    ):
        return node.replace_inputs(operands)
    shape = builder.broadcast_shapes([operand.shape for operand in operands])
    if node.operation == "reduce":
        shape = tuple(extent for axis, extent in enumerate(shape) if axis not in node.options["axes"])
    return Node(node.operation, operands, node.dtype, shape, node.options)


def _views_in(node: Node) -> list[Node]:
    """The views in the body of a loop, and of the loops in it."""
    return [
        inner
        for region in regions_of(node)
        for one in region
        for inner in ([one] if one.operation == "view" else _views_in(one) if one.operation == "loop" else [])
    ]


def _whole_window(copy: Node, window: _Window) -> Node:
    """The view of a window in the padded copy."""
    places = zip(window.index_map, window.paddings, strict=True)
    index_map = tuple((start + low, steps) for (start, steps), (low, _) in places)
    return Node("view", (copy,), copy.dtype, window.extents, {"map": index_map})
