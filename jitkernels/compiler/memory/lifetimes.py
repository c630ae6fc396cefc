"""Lifetimes of the arrays between steps: the live ranges from each array's definition to its last use.

Time counts units: a unit is a step, or a product with its epilogue nests. A unit may run again (rematerialization,
see `rematerialization`); its outputs are dead between their last reader and that time.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.memory.arena import Buffer
from jitkernels.compiler.schedule.fusion import UnfusedStep
from jitkernels.compiler.schedule.gemm_epilogue import Step, read_by, written_by
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

Unit = tuple[Step, ...]


def bytes_of(node: Node) -> Number:
    """The bytes of an array in whole cache lines plus one, so that arrays of round sizes map to different sets."""
    size = np.dtype(node.dtype).itemsize
    return (symbolic_dims.product(node.shape) * size + 2 * CACHE_LINE_BYTES - 1) // CACHE_LINE_BYTES * CACHE_LINE_BYTES


def units_of(steps: Sequence[Step]) -> list[Unit]:
    """Group steps into units."""
    results: list[list[Step]] = []
    waits = False
    for step in steps:
        is_nothing = isinstance(step, LoopNest) and step.is_empty
        if waits and isinstance(step, LoopNest):
            results[-1].append(step)
        else:
            results.append([step])
        waits = isinstance(step, MatMulStep) or (waits and is_nothing)
    return [tuple(result) for result in results]


@dataclass(frozen=True)
class Use:
    """The frame words of arrays that a unit reads (without its own outputs) and writes.

    `lasts`: they live to the end, as a result of NumPy may be a view of them.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    lasts: bool


def use_of(unit: Unit, arrays: Mapping[Node, StridedArray]) -> Use:
    reads: set[int] = set()
    writes: set[int] = set()
    for step in unit:
        if isinstance(step, LoopNest) and step.is_empty:
            continue
        reads |= {arrays[key].word for key in read_by(step) if key in arrays} - writes
        writes |= {arrays[node].word for node in written_by(step) if node in arrays}
        if isinstance(step, Flow):
            writes |= {word for body in step.bodies.values() for word in body.words}
    return Use(frozenset(reads), frozenset(writes), any(isinstance(step, UnfusedStep) for step in unit))


def is_pinned(unit: Unit, graph: Graph) -> bool:
    """Return whether a unit must not be reordered, as it has effects other than its outputs."""
    checks = set(graph.checks)
    return any(
        not isinstance(step, LoopNest | MatMulStep | KernelCall) or any(node in checks for node in written_by(step))
        for step in unit
    )


def work_of(unit: Unit) -> int:
    """The approximate number of additions of a unit, in the traced call."""
    return sum(
        symbolic_dims.value_of(step.work) for step in unit if isinstance(step, LoopNest | MatMulStep | KernelCall)
    )


def spans_of(order: Sequence[int], uses: Sequence[Use]) -> dict[int, list[tuple[int, int]]]:
    """The live ranges of each frame word, if units run in some order."""
    repeated = {unit for unit, count in Counter(order).items() if count > 1}
    result: dict[int, list[tuple[int, int]]] = {}
    for time, unit in enumerate(order):
        use = uses[unit]
        last = len(order) + 1 if use.lasts else time
        for word in use.reads | use.writes:
            ranges = result.setdefault(word, [])
            if not ranges or (unit in repeated and word in use.writes):
                ranges.append((time, last))
            else:
                ranges[-1] = ranges[-1][0], max(last, ranges[-1][1])
    return result


def lifetimes(
    order: Sequence[int],
    uses: Sequence[Use],
    allocated: Mapping[int, Node],
    inside: Mapping[int, tuple[int, int]] | None = None,
) -> list[Buffer]:
    """The buffers of arrays that are `allocated` at frame words; `inside`: see `flow_local_lifetimes`."""
    spans = spans_of(order, uses)
    return [
        Buffer(word, bytes_of(node), tuple(spans[word]), (inside or {}).get(word))
        for word, node in allocated.items()
        if word in spans
    ]


def flow_local_lifetimes(units: Sequence[Unit]) -> dict[int, tuple[int, int]]:
    """For arrays that live within one loop or branch: the first and last of its steps that need them, by frame word.

    An array that one stage of an iteration makes and uses is made again in the next iteration. Sets `sharing` of
    groups.
    """
    result: dict[int, tuple[int, int]] = {}
    for flow in (step for unit in units for step in unit if isinstance(step, Flow)):
        groups = [group for body in flow.bodies.values() for group in body.groups]
        spans: dict[int, tuple[int, int]] = {}
        steps = itertools.count()
        for group in groups:
            lasting = {group.arrays[node].word for node in group.program.graph.outputs}
            words = {
                group.program.words[node]: group.words[node]
                for node in group.program.allocated
                if node in group.words and group.program.words[node] not in lasting
            }
            for number, step in zip(steps, group.steps, strict=False):
                use = use_of((step,), group.arrays)
                for word in (use.reads | use.writes) & words.keys():
                    spans[words[word]] = spans.get(words[word], (number, number))[0], number
        shareable = {
            word: (first, last)
            for word, (first, last) in spans.items()
            if any(begin > last or end < first for begin, end in spans.values())
        }
        for group in groups:
            group.sharing = {word: shareable[word] for word in group.words.values() if word in shareable}
        result |= shareable
    return result
