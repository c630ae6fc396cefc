"""`ModelStats`: time, arithmetic rate and memory of each layer of a model: a kernel of compiled code, or a node."""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import jitkernels
from jitkernels.compiler.diagnostics.kernel_costs import KernelCost, constant_bytes, costs_of
from jitkernels.compiler.diagnostics.kernel_summary import OMITTED_FROM_SUMMARY, Group
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.onnx.model_graph import OnnxNode
from jitkernels.onnx.stages import CompiledStage
from jitkernels.tuning.peaks import multiply_add_rate


@dataclass(frozen=True)
class LayerStats:
    """One kernel of compiled code with the nodes that it computes, or one node that runs by itself.

    `seconds`: of the fastest call, None where calls were not timed; `share`: of the time of all layers. `operations`
    and `bytes_moved`: of one call; `share_of_peak`: their rate as a share of the measured rate of multiply-adds in
    registers. `arena_bytes`: its results in the arena; `constant_bytes`: the constants that it reads. What is unknown
    is None.
    """

    nodes: tuple[str, ...]
    level: str
    kernel: str
    seconds: float | None = None
    share: float | None = None
    operations: int | None = None
    operations_per_second: float | None = None
    share_of_peak: float | None = None
    bytes_moved: int | None = None
    arena_bytes: int = 0
    constant_bytes: int = 0
    dtype: str = ""


@dataclass(frozen=True)
class ModelStats:
    """All layers in the order in which they run, and the totals.

    `seconds`: of all layers, each in its fastest call; None where calls were not timed. `arena_bytes`: memory of the
    arrays between kernels, `arena_bound`: the most of these that is live at once; `constant_bytes`: weights as compiled
    code reads them. `peaks`: operations per second of multiply-adds in registers, by dtype, of `threads` threads.
    """

    name: str
    layers: tuple[LayerStats, ...]
    seconds: float | None
    threads: int
    peaks: Mapping[str, float]
    arena_bytes: int
    arena_bound: int
    constant_bytes: int

    def as_json(self) -> dict[str, Any]:
        """All fields as values of JSON."""
        return asdict(self)

    def __str__(self) -> str:
        time = "not timed" if self.seconds is None else f"{self.seconds * 1e3:.3f} ms"
        arena = f"arena {self.arena_bytes:,} bytes (at least {self.arena_bound:,})"
        lines = [f"{self.name}: {len(self.layers)} layers, {time}, {arena}, constants {self.constant_bytes:,} bytes"]
        for layer in self.layers:
            figures = [] if layer.seconds is None else [f"{layer.seconds * 1e6:.1f} us"]
            figures += [] if layer.share is None else [f"{layer.share:.1%} of the time"]
            figures += (
                [] if layer.operations_per_second is None else [f"{layer.operations_per_second / 1e9:.3g} Gflop/s"]
            )
            figures += [] if layer.share_of_peak is None else [f"{layer.share_of_peak:.1%} of the peak"]
            lines.append(f"  {', '.join(layer.nodes) or 'no node'}: {layer.kernel}: {', '.join(figures)}")
        return "\n".join(lines)


def stats_of(name: str, stages: Iterable[Any], *, is_timed: bool) -> ModelStats:
    """The stats of the stages of a plan; `is_timed`: their code counts times."""
    layers: list[LayerStats] = []
    arena = bound = constants = 0
    for stage in stages:
        if not isinstance(stage, CompiledStage):
            seconds = stage.least_seconds if is_timed else None
            layers.append(LayerStats((str(stage.nodes[0]),), stage.level, stage.level, seconds))
            continue
        for specialization in stage.specializations:
            layers += layers_of(stage, specialization, in_tiles=True)
            planned = getattr(specialization.program, "arena", None)
            arena = max(arena, planned.traced_bytes if planned is not None else 0)
            bound = max(bound, planned.bound if planned is not None else 0)
            constants += constant_bytes(specialization)
    times = [layer.seconds for layer in layers if layer.seconds is not None]
    total, threads = sum(times) if times else None, jitkernels.get_num_threads()
    dtypes = {layer.dtype for layer in layers if layer.operations_per_second is not None and layer.dtype}
    peaks = {dtype: multiply_add_rate(dtype, threads) for dtype in sorted(dtypes)}
    shared = tuple(_with_shares(layer, total, peaks) for layer in layers)
    return ModelStats(name, shared, total, threads, peaks, arena, bound, constants)


def layers_of(stage: CompiledStage, specialization: Any, *, in_tiles: bool = False) -> list[LayerStats]:
    """The kernels of compiled code in the order in which they run, without shares.

    `in_tiles`: those inside of loops over images in place of the loops.
    """
    return [_layer(stage, cost) for cost in costs_of(specialization, in_tiles=in_tiles)]


def _with_shares(layer: LayerStats, total: float | None, peaks: Mapping[str, float]) -> LayerStats:
    rate, peak = layer.operations_per_second, peaks.get(layer.dtype)
    return replace(
        layer,
        share=layer.seconds / total if total and layer.seconds is not None else None,
        share_of_peak=rate / peak if rate is not None and peak else None,
    )


def _layer(stage: CompiledStage, cost: KernelCost) -> LayerStats:
    operations, moved = cost.operations * cost.runs or None, cost.bytes_moved * cost.runs or None
    dtype = next((node.dtype for node in cost.group.writes if node.dtype in ("float32", "float64")), "")
    return LayerStats(
        nodes=tuple(dict.fromkeys(nodes_of(stage.origins, cost.group))),
        level=stage.level,
        kernel=text_of(cost.group),
        seconds=cost.seconds,
        operations=operations,
        operations_per_second=operations / cost.seconds if operations and cost.seconds else None,
        bytes_moved=moved,
        arena_bytes=cost.arena_bytes,
        constant_bytes=cost.constant_bytes,
        dtype=dtype,
    )


def nodes_of(origins: Sequence[tuple[int, OnnxNode | None]], group: Group) -> list[str]:
    """The nodes of the model whose operations a kernel computes, as far as rewriting them kept track.

    `origins`: the serials at which the trace of each node of the model began.
    """
    starts = [start for start, _ in origins]
    kept = [node for node in group.nodes if node.operation not in OMITTED_FROM_SUMMARY]
    places = sorted({bisect.bisect_right(starts, node.origin) - 1 for node in kept})
    found = [origins[place][1] for place in places if place >= 0]
    return [node.title for node in found if node is not None]


def text_of(group: Group) -> str:
    """The operations of a kernel, and the shapes of its first operand and of its first result."""
    shapes = [_shape(node) for node in (*group.reads[:1], *group.writes[:1])]
    arrays = f" {' -> '.join(shapes)}"
    if group.kind != "kernel":
        return f"{group.kind}: {group.text or 'copy'}{arrays}"
    attr = group.nodes[0].options["function"].attr
    shown = {name for array in (attr.arrays[0], attr.arrays[-1]) for name in array.shape.replace("*", " ").split()}
    own = [f"{name}={n}" for name, n in attr.fields().items() if type(n) is int and n != 1 and name not in shown]
    return ", ".join([f"{attr.name}{arrays}", *own])


def _shape(node: Node) -> str:
    return "x".join(str(symbolic_dims.value_of(size)) for size in node.shape) or "scalar"
