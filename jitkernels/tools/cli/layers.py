"""The table of a model's layers: time, rates and memory of each, and their sums."""

from rich.markup import escape
from rich.table import Table

from jitkernels.onnx.diagnostics.model_stats import LayerStats, ModelStats
from jitkernels.tools.cli import output

HEADS = ("nodes", "kernel", "time", "share", "GFLOP/s", "of peak", "arena", "constants")
TITLE_LENGTH = 60
"""The most characters of the nodes of a layer."""


def table(stats: ModelStats) -> Table:
    """One line for each layer in the order in which they run; no columns for what is unknown of all."""
    rows = [_cells(layer) for layer in stats.layers]
    heads = [head for head in HEADS if any(row[head] for row in rows)]
    result = output.table(*heads, right=tuple(heads[2:]))
    for row in rows:
        result.add_row(*(escape(row[head]) for head in heads))
    return result


def _cells(layer: LayerStats) -> dict[str, str]:
    nodes = ", ".join(layer.nodes)
    values = (
        nodes if len(nodes) <= TITLE_LENGTH else f"{nodes[:TITLE_LENGTH]}... ({len(layer.nodes)})",
        layer.kernel,
        "" if layer.seconds is None else output.duration(layer.seconds),
        "" if layer.share is None else f"{layer.share:.1%}",
        "" if layer.operations_per_second is None else f"{layer.operations_per_second / 1e9:.1f}",
        "" if layer.share_of_peak is None else f"{layer.share_of_peak:.0%}",
        output.size(layer.arena_bytes) if layer.arena_bytes else "",
        output.size(layer.constant_bytes) if layer.constant_bytes else "",
    )
    return dict(zip(HEADS, values, strict=True))


def summary(stats: ModelStats) -> str:
    """The totals in a line."""
    parts = [f"{stats.name}: {len(stats.layers)} layers"]
    if stats.seconds is not None:
        parts.append(f"{output.duration(stats.seconds)} in all")
    done = sum(layer.operations or 0 for layer in stats.layers)
    if stats.seconds and done:
        parts.append(f"{done / stats.seconds / 1e9:.1f} GFLOP/s")
    parts += [f"peak of {dtype} {rate / 1e9:.1f} GFLOP/s" for dtype, rate in stats.peaks.items()]
    arena = f"arena {output.size(stats.arena_bytes)}"
    parts.append(f"{arena} (live at once: {output.size(stats.arena_bound)})" if stats.arena_bytes else arena)
    parts += [f"constants {output.size(stats.constant_bytes)}", f"{stats.threads} threads"]
    return ", ".join(parts)
