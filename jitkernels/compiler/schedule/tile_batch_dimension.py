"""Tile and fuse the batch dimension: run a chain of layers image by image, in place of each layer over all images.

What a layer computes for a whole batch leaves the caches before the next layer reads it; that of one image stays there.
So a part of the graph that maps over dimension 0 becomes the body of a loop with a tile of one row, as linalg's
tile-and-fuse does with producers of a tiled consumer: each iteration views its row of the operands, runs all nodes for
a batch of one, and stores its row of the results. Iterations are independent and run in parallel, without barriers
between layers, and arrays inside of the loop have the size of one row.
"""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, readers, rebuild_roots
from jitkernels.compiler.ir.layout_propagation import propagate_layouts
from jitkernels.compiler.ir.regions import COPIED, TRUE, clone_region, items, parameter, reachable
from jitkernels.compiler.ir.symbolic_dims import Number, Scope, same
from jitkernels.compiler.schedule.batch_independence import RowOperands, for_one_row, row_operands
from jitkernels.compiler.schedule.batch_tiling_cost import profitable_runs


def tile_batch_dimension(graph: Graph, scope: Scope) -> Graph:
    """The graph with loops over the batch in place of the regions that are faster row by row."""
    batch = _batch_of(graph)
    if batch is None or graph.writes:  # a loop may bail out where arguments were written already
        return graph
    rows = {node: found for node in graph if (found := row_operands(node, batch)) is not None}
    runs = [run for region in _regions(graph, rows) for run in profitable_runs(graph, region, rows, batch)]
    for run in reversed(runs):  # a loop changes the nodes behind it alone
        graph = _tiled(graph, run, rows, batch, scope)
    return graph


def _batch_of(graph: Graph) -> Number | None:
    """The extent of the dimension 0 of most kernels; None where that is no batch."""
    sizes = [node.shape[0] for node in graph if node.operation == "kernel" and node.ndim > 1]
    counts = {symbolic_dims.key_of(size): sum(same(size, other) for other in sizes) for size in sizes}
    most = max(sizes, key=lambda size: counts[symbolic_dims.key_of(size)], default=1)
    return most if symbolic_dims.value_of(most) > 1 else None


def _regions(graph: Graph, rows: RowOperands) -> list[list[Node]]:
    """The nodes that map over the batch, in regions each of which runs after what it reads and before its readers.

    A node that does not map, or that needs all rows of another one, separates regions.
    """
    levels: dict[Node, int] = {}
    regions: dict[int, list[Node]] = {}
    for node in graph:
        level = 0
        for i, operand in enumerate(node.inputs):
            is_separate = operand in rows and i not in rows.get(node, ())
            level = max(level, levels[operand] + is_separate)
        levels[node] = level
        if node in rows:
            regions.setdefault(level, []).append(node)
    return [regions[level] for level in sorted(regions)]


class _Body:
    """The body of a loop over the batch: nodes of a region for one row.

    `captured`: the nodes that it reads; `row`: the index of its row.
    """

    def __init__(self, region: Sequence[Node], rows: RowOperands, row: Number) -> None:
        self.row = row
        self.captured: dict[Node, Node] = {}
        self.rows: dict[Node, Node] = {}
        for node in region:
            inputs = [self.of_operand(one, is_row=i in rows[node]) for i, one in enumerate(node.inputs)]
            self.rows[node] = for_one_row(node, inputs)

    def of_operand(self, node: Node, *, is_row: bool) -> Node:
        """An operand inside of the loop: its row, or all of it."""
        if not is_row:
            return node if node.operation in COPIED else self._capture(node)
        if node not in self.rows:
            index_map = ((self.row, ((0, 1),)), *builder.identity_map(node.ndim)[1:])
            self.rows[node] = builder.view(self._capture(node), index_map, (1, *node.shape[1:]))
        return self.rows[node]

    def _capture(self, node: Node) -> Node:
        if node not in self.captured:
            self.captured[node] = parameter(node.dtype, node.shape, len(self.captured))
        return self.captured[node]


def _tiled(graph: Graph, region: Sequence[Node], rows: RowOperands, batch: Number, scope: Scope) -> Graph:
    """The graph with a loop over the batch in place of a region."""
    results = _results(graph, region, rows)
    layouts = propagate_layouts(graph)
    if any(order is not None and order[0] for order in map(layouts.get, results)):
        return graph  # rows of a result lie in between one another
    name = f"sb{len(scope.values)}"
    scope.loop_variant[name] = 0, batch - 1
    row = scope.symbol(name, max(symbolic_dims.value_of(batch) // 2, 2))
    body = _Body(region, rows, row)
    carried = [parameter(node.dtype, node.shape, 0) for node in results]
    stored = [_with_row(array, body.rows[node], row) for array, node in zip(carried, results, strict=True)]
    parameters = [parameter("int64", (), 0, name), *carried, *body.captured.values()]
    options = {
        "counts": True,
        "carried": len(carried),
        "tiles": True,
        "condition": clone_region(parameters, [TRUE]),
        "body": clone_region(parameters, stored),
    }
    limits = [builder.constant(0, "int64"), builder.extent(batch), builder.constant(1, "int64")]
    arrays = [builder.unwritten(node.dtype, node.shape, layouts[node]) for node in results]
    loop = Node("loop", [*limits, *arrays, *body.captured], "int64", (), options)
    return _replaced(graph, dict(zip(results, items(loop, results), strict=True)))


def _results(graph: Graph, region: Sequence[Node], rows: RowOperands) -> list[Node]:
    """The nodes of a region that others read; views of such nodes are none, as others view the node itself."""
    inside, read, roots = set(region), readers(graph), set(graph.roots)
    results: list[Node] = []
    views: set[Node] = set()
    for node in reversed(region):
        if node.operation == "kernel":
            continue  # its items are read
        if node in roots or any(one not in inside or one in views for one in read[node]):
            if node.operation == "view" and rows[node] and node.inputs[0] in inside:
                views.add(node)
            else:
                results.append(node)
    return results[::-1]


def _with_row(array: Node, value: Node, row: Number) -> Node:
    index_map = ((row, ((0, 1),)), *builder.identity_map(array.ndim)[1:])
    options = {"map": index_map, "extents": (1, *array.shape[1:])}
    return Node("update", (array, value), array.dtype, array.shape, options)


def _replaced(graph: Graph, replacements: Mapping[Node, Node]) -> Graph:
    """The graph with other nodes in place of some."""
    new: dict[Node, Node] = {}
    for node in reachable(graph.roots, replacements):
        known = replacements.get(node)
        new[node] = node.replace_inputs([new[one] for one in node.inputs]) if known is None else new[known]
    return rebuild_roots(graph, new.__getitem__)
