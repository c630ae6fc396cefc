"""Drawing of a model: the graph of its compiled code as SVG, a box around each kernel with nodes and time."""

import html
from collections.abc import Iterable
from typing import Any

from jitkernels.compiler.diagnostics.graph_viz import CHARACTER, HEIGHT, MARGIN_PIXELS, WIDTH, drawn
from jitkernels.onnx.diagnostics.model_stats import LayerStats, layers_of
from jitkernels.onnx.stages import CompiledStage


class ModelDrawing:
    """A drawing that notebooks display; ``str`` of it is SVG. Stages stand below one another."""

    def __init__(self, name: str, stages: Iterable[Any], *, is_timed: bool) -> None:
        self._name, self._stages, self._is_timed = name, tuple(stages), is_timed

    def __str__(self) -> str:
        return self._repr_svg_()

    def _repr_svg_(self) -> str:
        parts, width, top = [], 0.0, 0.0
        for stage in self._stages:
            for text, own_width, height in self._drawn(stage):
                parts.append(f'<g transform="translate(0 {top:.0f})">\n{text}\n</g>')
                width, top = max(width, own_width), top + height
        size = f'width="{width:.0f}" height="{top:.0f}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
                f"<title>{html.escape(self._name)}</title>",
                *parts,
                "</svg>",
            ]
        )

    def _drawn(self, stage: Any) -> Iterable[tuple[str, float, float]]:
        """The drawings of a stage with their widths and heights."""
        if not isinstance(stage, CompiledStage):
            yield _box(str(stage.nodes[0]), stage.level, stage.least_seconds if self._is_timed else None)
            return
        for specialization in stage.specializations[-1:]:
            if specialization.graph is not None:
                titles = [title_of(layer) for layer in layers_of(stage, specialization)]
                drawing = drawn(self._name, specialization, stage.inputs, titles)
                yield str(drawing), drawing.width, drawing.height


def title_of(layer: LayerStats) -> str:
    """The nodes of a layer, and the time of its fastest call."""
    parts = [*layer.nodes, *([] if layer.seconds is None else [f"{layer.seconds * 1e6:.1f} us"])]
    return ", ".join(parts) or "no node"


def _box(node: str, level: str, seconds: float | None) -> tuple[str, float, float]:
    """A node that runs by itself."""
    text = ", ".join([f"{node} in {level}", *([] if seconds is None else [f"{seconds * 1e6:.1f} us"])])
    width = len(text) * CHARACTER + WIDTH
    box = (
        f'<rect x="{MARGIN_PIXELS}" y="4" width="{width:.0f}" height="{HEIGHT}" rx="5" fill="#f7ead7" stroke="#444"/>'
        f'<text x="{MARGIN_PIXELS + 8}" y="23" font-family="sans-serif" font-size="12">{html.escape(text)}</text>'
    )
    return box, width + 2 * MARGIN_PIXELS, HEIGHT + 8.0
