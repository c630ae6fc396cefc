"""A computation on arrays whose leading dimensions are one, made one on arrays that have them all.

A row's reference has one extent for any number of dimensions. Where it does to these nothing but go along them, what
it computes is traced with a symbol for that extent, and made again with the dimensions themselves, so that no reshape
stands between it and what is around it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.operations import OPERATIONS

Dimensions = Mapping[str, tuple[Number, ...]]
"""Symbols, and the dimensions that each stands for."""
ALONG = frozenset({"reduce", "scan", "concatenate"})
"""Operations along axes, which other dimensions do not concern."""


def split(roots: Sequence[Node], given: Mapping[int, Node], symbols: Dimensions) -> list[Node]:
    """The roots made again from what is `given` for some nodes, by their ids.

    Raises UnknownError where something is done to dimensions together.
    """
    new = dict(given)
    for node in sorted_nodes(roots):
        if id(node) not in new:
            new[id(node)] = _made(node, [new[id(one)] for one in node.inputs], symbols)
    return [new[id(root)] for root in roots]


def _made(node: Node, inputs: list[Node], symbols: Dimensions) -> Node:
    own = {id(node): node, **{id(one): one for one in node.inputs}}
    if not any(_names(extent, symbols) for one in own.values() for extent in one.shape):
        kept = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        if kept and not _in_options(node.options, symbols):
            return node
        if not _in_options(node.options, symbols):
            return node.with_inputs(inputs)
    shape = [size for extent in node.shape for size in _sizes(extent, symbols)]
    operation = node.operation
    if operation == "extent":
        return construct.extent(whole(node.options["extent"], symbols))
    if operation == "reshape":
        return construct.reshape(inputs[0], shape)
    if operation == "view":
        return construct.view(inputs[0], _map(node, symbols), shape)
    if OPERATIONS[operation].is_elementwise or operation == "cast":
        operands = [
            _aligned(old, one, node.shape, symbols) for old, one in zip(node.inputs, inputs, strict=True)
        ]
        return Node(operation, operands, node.dtype, shape, node.options)
    if operation in ALONG:
        return Node(operation, inputs, node.dtype, shape, _axes(node, symbols))
    if operation == "matmul" and all(_is_batch(one, symbols) for one in (node, *node.inputs)):
        return Node(operation, inputs, node.dtype, shape)
    raise UnknownError(f"{operation} of dimensions that are one")


def _names(extent: Number, symbols: Dimensions) -> bool:
    return not extents.symbols_of(extent).isdisjoint(symbols)


def _in_options(value: Any, symbols: Dimensions) -> bool:
    if isinstance(value, Extent):
        return _names(value, symbols)
    if isinstance(value, Mapping):
        return any(_in_options(one, symbols) for one in value.values())
    return isinstance(value, tuple | list) and any(_in_options(one, symbols) for one in value)


def _sizes(extent: Number, symbols: Dimensions) -> tuple[Number, ...]:
    """The extents that there are in place of one."""
    name = extents.bare(extent)
    return symbols[name] if name is not None and name in symbols else (whole(extent, symbols),)


def whole(extent: Number, symbols: Dimensions) -> Number:
    """An extent with products in place of symbols."""
    if not isinstance(extent, Extent) or not _names(extent, symbols):
        return extent
    total: Number = 0
    for monomial, count in extent.terms.items():
        term: Number = count
        for atom in monomial:
            if atom.operation and _names(extents.made({(atom,): 1}, extent.scope), symbols):
                raise UnknownError("a quotient of dimensions that are one")
            known = symbols.get(atom.text)
            term = term * (
                extents.made({(atom,): 1}, extent.scope) if known is None else extents.product(known)
            )
        total = total + term
    return total


def _places(shape: Sequence[Number], symbols: Dimensions) -> list[list[int]]:
    """Which dimensions there are now in place of each."""
    found: list[list[int]] = []
    count = 0
    for extent in shape:
        sizes = _sizes(extent, symbols)
        found.append([*range(count, count + len(sizes))])
        count += len(sizes)
    return found


def _map(node: Node, symbols: Dimensions) -> construct.IndexMap:
    """The index map of a view, in which dimensions that are split are as they were."""
    source, places = node.inputs[0].shape, _places(node.shape, symbols)
    found: list[Any] = []
    for extent, (start, steps) in zip(source, node.options["map"], strict=True):
        if extents.bare(extent) not in symbols:
            if any(len(places[i]) != 1 or extents.bare(node.shape[i]) in symbols for i, _ in steps):
                raise UnknownError("a view along dimensions that are one")
            moved = tuple((places[i][0], whole(step, symbols)) for i, step in steps)
            found.append((whole(start, symbols), moved))
            continue
        if len(steps) != 1 or not same(start, 0) or not same(steps[0][1], 1):
            raise UnknownError("a view of some of dimensions that are one")
        if not same(node.shape[steps[0][0]], extent):
            raise UnknownError("a view of some of dimensions that are one")
        found += [(0, ((place, 1),)) for place in places[steps[0][0]]]
    return tuple(found)


def _aligned(old: Node, new: Node, shape: Sequence[Number], symbols: Dimensions) -> Node:
    """An operand whose one element along what is split is one along each dimension that there is in place of it."""
    missing = len(shape) - old.ndim
    kept: list[Number] = []
    for extent, full in zip(old.shape, shape[missing:], strict=True):
        sizes = _sizes(extent, symbols)
        kept += sizes if extents.same(extent, full) else (sizes[0],) * len(_sizes(full, symbols))
    return construct.reshape(new, kept)


def _axes(node: Node, symbols: Dimensions) -> dict[str, Any]:
    """The options of an operation along axes, none of which is split."""
    options = dict(node.options)
    places = _places(node.inputs[0].shape, symbols)
    axes = options["axes"] if "axes" in options else (options["axis"],)
    split_axes = [axis for axis in axes if extents.bare(node.inputs[0].shape[axis]) in symbols]
    if split_axes and (node.operation != "reduce" or options["kind"] in ("argmin", "argmax")):
        raise UnknownError(f"{node.operation} along dimensions that are one")
    moved = tuple(place for axis in axes for place in places[axis])
    return {**options, **({"axes": moved} if "axes" in options else {"axis": moved[0]})}


def _is_batch(node: Node, symbols: Dimensions) -> bool:
    """Whether the last two dimensions of an operand of a product are as they were."""
    return not any(_names(extent, symbols) for extent in node.shape[-2:])
