"""``jitkernels compare``: a model beside onnxruntime."""

import json as json_text
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

import jitkernels
from jitkernels.benchmarks.networks.model_comparison import ONNX, ModelComparison, compared
from jitkernels.errors import ArgumentError
from jitkernels.onnx import load
from jitkernels.tools.cli import output
from jitkernels.tools.cli.model_arguments import feeds_of


def run(
    file: Path, *, feeds: tuple[Sequence[str], Sequence[str]], threads: int | None, seconds: float, json: bool
) -> int:
    """Compare and print. `feeds`: inputs and symbolic sizes as on the command line."""
    if not 0 < seconds < float("inf"):
        raise ArgumentError(f"--seconds: expected a time of more than 0, got {seconds}")
    if threads is not None:
        jitkernels.set_num_threads(threads)
    inputs = feeds_of(file, load(file).get_inputs(), *feeds)
    comparison = compared(file, inputs, jitkernels.get_num_threads(), seconds)
    if json:
        print(json_text.dumps(comparison.as_json(), indent=1))
        return 0
    show(file.name, comparison)
    return 0


def show(name: str, comparison: ModelComparison) -> None:
    """Print a line for each contestant, and one for each output."""
    heads = ("time", "spread", "import", "load", "first result", "peak memory")
    table = output.table(name, *heads, right=heads)
    for contestant, figures in comparison.contestants.items():
        times = (figures.seconds, figures.spread, figures.import_seconds, figures.load_seconds, figures.first_seconds)
        peak = "" if figures.peak_bytes is None else output.size(figures.peak_bytes)
        table.add_row(contestant, *map(output.duration, times), peak)
    output.show(table)
    lines = [
        f"output {one.output}: differs by {one.absolute:.2g}, {one.relative:.2g} of the largest element"
        for one in comparison.differences
    ]
    shapes = ", ".join(f"{name} {text}" for name, text in comparison.inputs.items())
    count = comparison.threads
    lines.append(f"{comparison.speed:.2f} times {ONNX}, {count} thread{'s'[: count > 1]}; {shapes}")
    output.console().print(escape("\n".join(lines)), soft_wrap=True)
