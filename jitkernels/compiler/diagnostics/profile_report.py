"""Profile reports: time, bandwidth and arithmetic rate of each kernel of functions with ``profile=True``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitkernels.compiler.diagnostics.kernel_summary import Group, group_of, groups_of
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.lowering.profile_counters import Profile, SizeCounters
from jitkernels.compiler.schedule.loop_nest import LoopNest

OPERATIONS_WITHOUT_ARITHMETIC = frozenset({"input", "constant", "extent", "view", "cast", "reshape", "placed", "copy"})
"""Operations that do no arithmetic."""


@dataclass(frozen=True)
class KernelTime:
    """Seconds of one kernel in all calls of one size, and its share of the time of all kernels.

    `runs`: how often it ran, which in a loop exceeds the calls. Rates of bytes moved and of arithmetic operations (a
    function counts as one) are None where sizes differ between iterations. `inside`: it is part of the loop or branch
    before it, which includes its time.
    """

    kernel: str
    sizes: Mapping[str, int]
    calls: int
    runs: int
    seconds: float
    share: float
    bytes_per_second: float | None = None
    operations_per_second: float | None = None
    inside: bool = False

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        return f"{self.kernel}{f' for {sizes}' if sizes else ''}: {self.figures}"

    @property
    def figures(self) -> str:
        """Share, time per run, and rates."""
        seconds_per_run = self.seconds / max(self.runs, 1)
        figures = [f"{100 * self.share:.1f} % of the time", f"{self.runs:,} times {_in_units(seconds_per_run, 's')}"]
        if self.bytes_per_second:
            figures.append(f"{self.bytes_per_second / 1e9:.3g} GB/s")
        if self.operations_per_second:
            figures.append(f"{self.operations_per_second / 1e9:.3g} Gflop/s")
        return ", ".join(figures)


def _in_units(seconds: float, unit: str) -> str:
    for factor, prefix in ((1e9, "n"), (1e6, "u"), (1e3, "m")):
        if seconds * factor < 1e3:
            return f"{seconds * factor:.3g} {prefix}{unit}"
    return f"{seconds:.3g} {unit}"


def times_of(programs: Iterable[Any]) -> tuple[KernelTime, ...]:
    """The kernel times of some programs, by the sizes of calls; shares are of the sum of all."""
    times = [
        kernel_time
        for program in programs
        if getattr(program, "profile", None) is not None
        for taken in [*program.profile.by_sizes.values()]
        for group in groups_of(program, program.graph)
        for kernel_time in _times(group, program.profile, taken)
    ]
    total = sum(kernel_time.seconds for kernel_time in times if not kernel_time.inside)
    return tuple(replace(kernel_time, share=kernel_time.seconds / total if total else 0.0) for kernel_time in times)


def by_group(program: Any, groups: Sequence[Group]) -> list[Group]:
    """The groups of one program with their times, summed over all sizes of calls."""
    profile = getattr(program, "profile", None)
    all_taken: list[SizeCounters] = [*profile.by_sizes.values()] if profile is not None else []
    if profile is None or not all_taken:
        return [*groups]
    summed = [
        [_sum(times_by_size) for times_by_size in zip(*(_times(g, profile, taken) for taken in all_taken), strict=True)]
        for g in groups
    ]
    total = sum(kernel_time.seconds for times in summed for kernel_time in times if not kernel_time.inside)
    return [
        replace(group, times=tuple(replace(t, share=t.seconds / total if total else 0.0) for t in times))
        for group, times in zip(groups, summed, strict=True)
    ]


def _sum(several: Sequence[KernelTime]) -> KernelTime:
    seconds = sum(kernel_time.seconds for kernel_time in several)

    def rate(name: str) -> float | None:
        rates = [getattr(kernel_time, name) for kernel_time in several]
        if None in rates or not seconds:
            return None
        return (
            float(sum(kernel_time.seconds * each for kernel_time, each in zip(several, rates, strict=True))) / seconds
        )

    return replace(
        several[0],
        sizes=several[0].sizes if len(several) == 1 else {},
        calls=sum(kernel_time.calls for kernel_time in several),
        runs=sum(kernel_time.runs for kernel_time in several),
        seconds=seconds,
        bytes_per_second=rate("bytes_per_second"),
        operations_per_second=rate("operations_per_second"),
    )


def _times(group: Group, profile: Profile, taken: SizeCounters) -> list[KernelTime]:
    """The time of a group in calls of one size, and then that of each kernel inside of it."""
    within = [_time(group_of(step), profile, taken, (step,)) for step in group.inner]
    own = _time(group, profile, taken, group.steps)
    return [own, *(replace(kernel_time, inside=True) for kernel_time in within)]


def _time(group: Group, profile: Profile, taken: SizeCounters, steps: Sequence[Any]) -> KernelTime:
    numbers = [number for number, value in enumerate(profile.steps) if any(value is step for step in steps)]
    numbers = [number for number in numbers if number < len(taken.counters)]
    seconds = sum(taken.seconds(number) for number in numbers)
    runs = max((int(taken.counters[number, 1]) for number in numbers), default=0)
    bytes_moved, operations = work_of(group, taken.values)
    rate = runs / seconds if seconds else 0.0
    return KernelTime(
        f"{group.kind}: {group.text or 'copy'}",
        taken.values,
        taken.calls,
        runs,
        seconds,
        0.0,
        bytes_moved * rate if bytes_moved else None,
        operations * rate if operations else None,
    )


def work_of(group: Group, values: Mapping[str, int]) -> tuple[int, int]:
    """Bytes moved and operations of one run; zeros where these are unknown."""
    if group.kind in ("loop", "branch"):
        return 0, 0
    try:
        bytes_moved = sum(_bytes(step, values) for step in group.steps)
        operations = sum(_operations(node, values) for node in group.nodes)
    except KeyError:  # a size that differs between iterations
        return 0, 0
    return bytes_moved, operations


def _bytes(step: Any, values: Mapping[str, int]) -> int:
    """Bytes that one run of a step moves: of an array that it needs a slice of, that slice."""
    if isinstance(step, LoopNest):
        stored = {store.region.root for store in step.stores}
        return sum(size_for(node, values) for node in stored) + sum(
            min(size_for(leaf, values), symbolic_dims.evaluated(count, values) * np.dtype(leaf.dtype).itemsize)
            for leaf, count in step.reads
        )
    node = step if isinstance(step, Node) else step.node
    return sum(size_for(operand, values) for operand in (*node.inputs, node))


def size_for(node: Node, values: Mapping[str, int]) -> int:
    """Bytes of an array for some values of the symbols."""
    return _elements(node, values) * np.dtype(node.dtype).itemsize


def _operations(node: Node, values: Mapping[str, int]) -> int:
    if node.operation in OPERATIONS_WITHOUT_ARITHMETIC or node.operation == "call":
        return 0
    if node.operation == "kernel":
        return int(node.options["function"].operations(values))
    if node.operation == "matmul":
        return 2 * _elements(node, values) * symbolic_dims.evaluated(node.inputs[0].shape[-1], values)
    return _elements(node.inputs[0] if node.operation == "reduce" else node, values)


def _elements(node: Node, values: Mapping[str, int]) -> int:
    return symbolic_dims.evaluated(symbolic_dims.product(node.shape), values)
