"""Graph drawing: a compiled function's operations and data flow as SVG, with a box around each kernel."""

import html
from collections.abc import Iterator, Sequence

from jitkernels.compiler.diagnostics.explain import described, names_of
from jitkernels.compiler.diagnostics.kernel_summary import OMITTED_FROM_SUMMARY, Group, groups_of, label
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir.graph import Node
from jitkernels.errors import NotUsableError

WIDTH, HEIGHT, GAP, MARGIN_PIXELS, CHARACTER = 24, 30, 26, 16, 7.2
MAX_DRAWN_CONSTANTS = 8
"""The most constants that are drawn: a network has hundreds."""
COLOURS = {
    "loop nest": "#e3f0e3", "kernel": "#e3f0e3", "product": "#e3e8f5", "NumPy": "#f7ead7", "loop": "#f0e3ee",
    "branch": "#f0e3ee", "": "none",
}  # fmt: skip


def drawn(
    name: str, specialization: "Specialization | str", arguments: Sequence[str], titles: Sequence[str] = ()
) -> "Drawing":
    """The drawing of compiled code; `titles`: what boxes are called besides their kinds.

    Raises NotUsableError where a call falls back to NumPy, with the known reason.
    """
    reason = specialization if isinstance(specialization, str) else specialization.reason
    if isinstance(specialization, str) or specialization.graph is None:
        raise NotUsableError(f"{name} has no graph: it falls back to NumPy: {reason}")
    graph = getattr(specialization.program, "graph", specialization.graph)
    groups = groups_of(specialization.program, graph)
    is_small = len(graph.inputs) - len(arguments) <= MAX_DRAWN_CONSTANTS
    inputs = graph.inputs if is_small else graph.inputs[: len(arguments)]
    return Drawing(inputs, groups, names_of(graph, groups, arguments), titles)


class Drawing:
    """A drawing that notebooks display; ``str`` of it is SVG."""

    def __init__(
        self, inputs: Sequence[Node], groups: Sequence[Group], names: dict[int, str], titles: Sequence[str] = ()
    ) -> None:
        self._inputs, self._groups, self._names, self._titles = inputs, groups, names, titles
        self._positions: dict[int, tuple[float, float, float]] = {}
        self._boxes: list[tuple[str, str, float, float, float, float]] = []
        self.width = self.height = 0.0

    def __str__(self) -> str:
        return self._repr_svg_()

    def _repr_svg_(self) -> str:
        self._positions, self._boxes = {}, []
        bottom = self._row(self._inputs, MARGIN_PIXELS)
        for number, group in enumerate(self._groups, 1):
            bottom = self._box(number, group, bottom)
        right = [x + w for x, _, w in self._positions.values()] + [x + w for _, _, x, _, w, _ in self._boxes]
        self.width, self.height = max([*right, 200]) + MARGIN_PIXELS, bottom + MARGIN_PIXELS
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}"',
                'font-family="sans-serif" font-size="12">',
                '<defs><marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"',
                'orient="auto"><path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>',
                f'<rect width="{self.width:.0f}" height="{self.height:.0f}" fill="white"/>',
                *self._drawn_boxes(),
                *self._edges(),
                *self._nodes(),
                "</svg>",
            ]
        )

    def _text(self, node: Node) -> str:
        name = self._names.get(id(node))
        if node.operation == "input":
            return f"{name or 'constant'}: {described(node)}"
        return f"{label(node)} = {name}: {described(node)}" if name else label(node)

    def _row(self, nodes: Sequence[Node], top: float, left: float = MARGIN_PIXELS) -> float:
        """Lay out nodes side by side; return the top of the next row."""
        for node in nodes:
            width = len(self._text(node)) * CHARACTER + WIDTH
            self._positions[id(node)] = (left, top, width)
            left += width + GAP
        return top + HEIGHT + GAP if nodes else top

    def _box(self, number: int, group: Group, top: float) -> float:
        inside = {id(node) for node in group.nodes}
        ranks: dict[int, int] = {}
        for node in group.nodes:
            ranks[id(node)] = 1 + max(
                [ranks[id(operand)] for operand in node.inputs if id(operand) in inside], default=-1
            )
        start, where = top, top + 22
        for rank in range(max(ranks.values(), default=0) + 1):
            row = [node for node in group.nodes if ranks[id(node)] == rank]
            where = self._row(row, where, 2 * MARGIN_PIXELS)
        for node in group.writes:  # an updated argument or slice of an array: the last operation writes it
            if id(node) not in self._positions and group.nodes:
                self._positions[id(node)] = self._positions[id(group.nodes[-1])]
        title = f"{number} {group.kind}" + (f": {self._titles[number - 1]}" if self._titles else "")
        width = max([self._positions[key][0] + self._positions[key][2] for key in inside], default=100.0)
        width = max(width, len(title) * CHARACTER + WIDTH)
        self._boxes.append((group.kind, title, MARGIN_PIXELS, start, width, where - start - 10))
        return where + 8

    def _drawn_boxes(self) -> Iterator[str]:
        for kind, title, x, y, width, height in self._boxes:
            yield (
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="8" '
                f'fill="{COLOURS[kind]}" stroke="#999" stroke-dasharray="4 3"/>'
                f'<text x="{x + 8:.0f}" y="{y + 15:.0f}" fill="#555">{html.escape(title)}</text>'
            )

    def _nodes(self) -> Iterator[str]:
        for node in [*self._inputs, *(node for group in self._groups for node in group.nodes)]:
            x, y, width = self._positions[id(node)]
            colour = "#f4f4f4" if node.operation in OMITTED_FROM_SUMMARY else "white"
            yield (
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="5" fill="{colour}" '
                f'stroke="#444"/><text x="{x + width / 2:.0f}" y="{y + 19:.0f}" text-anchor="middle">'
                f"{html.escape(self._text(node))}</text>"
            )

    def _edges(self) -> Iterator[str]:
        for group in self._groups:
            for node in group.nodes:
                for operand in node.inputs:
                    if id(operand) in self._positions:
                        yield self._edge(operand, node)

    def _edge(self, source: Node, target: Node) -> str:
        x1, y1, w1 = self._positions[id(source)]
        x2, y2, w2 = self._positions[id(target)]
        a, b, c, d = x1 + w1 / 2, y1 + HEIGHT, x2 + w2 / 2, y2
        bend = max(12.0, (d - b) / 2)
        path = f"M{a:.0f} {b:.0f}C{a:.0f} {b + bend:.0f} {c:.0f} {d - bend:.0f} {c:.0f} {d:.0f}"
        return f'<path d="{path}" fill="none" stroke="#666" marker-end="url(#to)"/>'
