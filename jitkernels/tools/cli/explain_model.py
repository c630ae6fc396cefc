"""``jitkernels explain model.onnx``: how nodes run, the kernels of compiled code, and the memory between these."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from jitkernels.onnx import load
from jitkernels.tools.cli import layers, output
from jitkernels.tools.cli.model_arguments import feeds_of, shapes_of
from jitkernels.tools.cli.run import call_for_some_time


def run(file: Path, inputs: Sequence[str], dims: Sequence[str], svg: Path | None) -> int:
    """Print levels, kernels and memory for such inputs; draw the graph with times if `svg` names a file."""
    model = load(file, profile=svg is not None)
    feeds = feeds_of(file, model.get_inputs(), inputs, dims)
    arrays = list(feeds.values())
    explanation = model.explain(*arrays)
    if svg is not None:
        call_for_some_time(model, feeds)
        svg.write_text(str(model.drawing(*arrays)), encoding="utf-8")
    stats = model.stats()
    out = output.console()
    out.print(escape(explanation.levels_text()), soft_wrap=True)
    output.show(layers.table(stats))
    out.print(escape(f"{layers.summary(stats)}; {shapes_of(feeds)}"), soft_wrap=True)
    return 0
