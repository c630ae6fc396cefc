"""Unflatten batch dimensions.

Rebuild a computation traced with one flattened leading dimension on arrays with them all. A row's reference has one
extent for any number of batch dimensions. Where it only maps over them, its trace with a symbol for that extent is
rebuilt with the dimensions themselves, so that no reshape separates it from its neighbours.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.compiler.ir import builder, pytree, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.dim_proofs import with_atoms
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same

Dimensions = Mapping[str, tuple[Number, ...]]
"""By symbol, the dimensions that it flattens."""
ALONG = frozenset({"reduce", "scan", "concatenate"})
"""Operations along axes, which map over all other dimensions."""


def unflatten(roots: Sequence[Node], replacements: Mapping[Node, Node], symbols: Dimensions) -> list[Node]:
    """Rebuild the roots with unflattened dimensions from `replacements` of nodes.

    Raises UnsupportedError if an operation does more than map over a flattened dimension.
    """
    new = dict(replacements)
    for node in sorted_nodes(roots):
        if node not in new:
            new[node] = _rebuild(node, [new[operand] for operand in node.inputs], symbols)
    return [new[root] for root in roots]


def _rebuild(node: Node, inputs: list[Node], symbols: Dimensions) -> Node:
    is_flattened = any(_names(extent, symbols) for one in (node, *node.inputs) for extent in one.shape)
    if not is_flattened and not _in_options(node.options, symbols):
        return node if node.inputs == tuple(inputs) else node.with_inputs(inputs)
    shape = [size for extent in node.shape for size in _sizes(extent, symbols)]
    operation = node.operation
    if operation == "extent":
        return builder.extent(whole(node.options["extent"], symbols))
    if operation == "reshape":
        return builder.reshape(inputs[0], shape)
    if operation == "view":
        return builder.view(inputs[0], _map(node, symbols), shape)
    if OPERATIONS[operation].is_elementwise or operation == "cast":
        operands = [
            _aligned(old, operand, node.shape, symbols) for old, operand in zip(node.inputs, inputs, strict=True)
        ]
        return Node(operation, operands, node.dtype, shape, node.options)
    if operation in ALONG:
        return Node(operation, inputs, node.dtype, shape, _axes(node, symbols))
    if operation == "matmul" and all(_is_batch(operand, symbols) for operand in (node, *node.inputs)):
        return Node(operation, inputs, node.dtype, shape)
    raise UnsupportedError(f"{operation} of flattened dimensions")


def _names(extent: Number, symbols: Dimensions) -> bool:
    return not symbolic_dims.symbols_of(extent).isdisjoint(symbols)


def _in_options(options: Mapping[str, Any], symbols: Dimensions) -> bool:
    extents = pytree.leaves(list(options.values()))
    return any(isinstance(extent, Extent) and _names(extent, symbols) for extent in extents)


def _sizes(extent: Number, symbols: Dimensions) -> tuple[Number, ...]:
    """The extents that replace one."""
    name = symbolic_dims.bare(extent)
    return symbols[name] if name is not None and name in symbols else (whole(extent, symbols),)


def whole(extent: Number, symbols: Dimensions) -> Number:
    """Replace the symbols of an extent by products."""
    if not isinstance(extent, Extent) or not _names(extent, symbols):
        return extent

    def new(atom: symbolic_dims.Atom) -> Number:
        itself = symbolic_dims.polynomial({(atom,): 1}, extent.scope)
        if atom.operation and _names(itself, symbols):
            raise UnsupportedError("a quotient of flattened dimensions")
        return symbolic_dims.product(symbols[atom.text]) if atom.text in symbols else itself

    return with_atoms(extent, new)


def _places(shape: Sequence[Number], symbols: Dimensions) -> list[list[int]]:
    """The new dimensions that replace each old one."""
    results: list[list[int]] = []
    count = 0
    for extent in shape:
        sizes = _sizes(extent, symbols)
        results.append([*range(count, count + len(sizes))])
        count += len(sizes)
    return results


def _map(node: Node, symbols: Dimensions) -> builder.IndexMap:
    """The index map of a view with unflattened dimensions."""
    source, dims_of = node.inputs[0].shape, _places(node.shape, symbols)
    results: list[Any] = []
    for extent, (start, steps) in zip(source, node.options["map"], strict=True):
        if symbolic_dims.bare(extent) not in symbols:
            if any(len(dims_of[i]) != 1 or symbolic_dims.bare(node.shape[i]) in symbols for i, _ in steps):
                raise UnsupportedError("a view along flattened dimensions")
            mapped_steps = tuple((dims_of[i][0], whole(step, symbols)) for i, step in steps)
            results.append((whole(start, symbols), mapped_steps))
            continue
        if len(steps) != 1 or not same(start, 0) or not same(steps[0][1], 1):
            raise UnsupportedError("a view of some of flattened dimensions")
        if not same(node.shape[steps[0][0]], extent):
            raise UnsupportedError("a view of some of flattened dimensions")
        results += [(0, ((dim, 1),)) for dim in dims_of[steps[0][0]]]
    return tuple(results)


def _aligned(old: Node, new: Node, shape: Sequence[Number], symbols: Dimensions) -> Node:
    """Reshape an operand so that it broadcasts along the unflattened dimensions."""
    missing = len(shape) - old.ndim
    extents: list[Number] = []
    for extent, full in zip(old.shape, shape[missing:], strict=True):
        sizes = _sizes(extent, symbols)
        extents += sizes if symbolic_dims.same(extent, full) else (sizes[0],) * len(_sizes(full, symbols))
    return builder.reshape(new, extents)


def _axes(node: Node, symbols: Dimensions) -> dict[str, Any]:
    """The options of an operation along axes, none of which is unflattened."""
    options = dict(node.options)
    dims_of = _places(node.inputs[0].shape, symbols)
    axes = options["axes"] if "axes" in options else (options["axis"],)
    split_axes = [axis for axis in axes if symbolic_dims.bare(node.inputs[0].shape[axis]) in symbols]
    if split_axes and (node.operation != "reduce" or options["kind"] in ("argmin", "argmax")):
        raise UnsupportedError(f"{node.operation} along flattened dimensions")
    new_axes = tuple(dim for axis in axes for dim in dims_of[axis])
    return {**options, **({"axes": new_axes} if "axes" in options else {"axis": new_axes[0]})}


def _is_batch(node: Node, symbols: Dimensions) -> bool:
    """Return whether the last two dimensions of a product's operand are unchanged."""
    return not any(_names(extent, symbols) for extent in node.shape[-2:])
