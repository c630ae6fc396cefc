"""What the kernels of a function took, of those that were told to count it (`JitConfig.profile`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jitkernels.frontends.groups import Group, group_of, groups_of
from jitkernels.graph import extents
from jitkernels.graph.ir import Node
from jitkernels.graph.nests import Nest
from jitkernels.graph.profile import Profile, Taken

FREE = frozenset({"input", "constant", "extent", "view", "cast", "reshape", "placed", "copy"})
"""Operations that count as none of arithmetic."""


@dataclass(frozen=True)
class KernelTime:
    """Seconds of one kernel in all calls of some sizes, and which share that is of the time of all kernels.

    `runs`: how often it ran, which inside of a loop is more often than calls were. Bytes that it reads and writes, and
    operations of arithmetic (functions count as one), are None where sizes differ from round to round. `inside`: it is
    part of the loop or branch before it, whose time it is a part of.
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
        """Share, time of a run, and rates."""
        each = self.seconds / max(self.runs, 1)
        told = [f"{100 * self.share:.1f} % of the time", f"{self.runs:,} times {_in_units(each, 's')}"]
        if self.bytes_per_second:
            told.append(f"{self.bytes_per_second / 1e9:.3g} GB/s")
        if self.operations_per_second:
            told.append(f"{self.operations_per_second / 1e9:.3g} Gflop/s")
        return ", ".join(told)


def _in_units(seconds: float, unit: str) -> str:
    for factor, prefix in ((1e9, "n"), (1e6, "u"), (1e3, "m")):
        if seconds * factor < 1e3:
            return f"{seconds * factor:.3g} {prefix}{unit}"
    return f"{seconds:.3g} {unit}"


def times_of(programs: Iterable[Any]) -> tuple[KernelTime, ...]:
    """Those of some programs, call sizes one after another, each kernel with the share of all of them."""
    found = [
        one
        for program in programs
        if getattr(program, "profile", None) is not None
        for taken in [*program.profile.by_sizes.values()]
        for group in groups_of(program, program.graph)
        for one in _times(group, program.profile, taken)
    ]
    whole = sum(one.seconds for one in found if not one.inside)
    return tuple(replace(one, share=one.seconds / whole if whole else 0.0) for one in found)


def by_group(program: Any, groups: Sequence[Group]) -> list[Group]:
    """The groups of one program with what they took, over all sizes of calls."""
    profile = getattr(program, "profile", None)
    all_taken: list[Taken] = [*profile.by_sizes.values()] if profile is not None else []
    if profile is None or not all_taken:
        return [*groups]
    summed = [
        [_sum(several) for several in zip(*(_times(g, profile, t) for t in all_taken), strict=True)]
        for g in groups
    ]
    whole = sum(one.seconds for times in summed for one in times if not one.inside)
    return [
        replace(group, times=tuple(replace(t, share=t.seconds / whole if whole else 0.0) for t in times))
        for group, times in zip(groups, summed, strict=True)
    ]


def _sum(several: Sequence[KernelTime]) -> KernelTime:
    seconds = sum(one.seconds for one in several)

    def rate(name: str) -> float | None:
        rates = [getattr(one, name) for one in several]
        if None in rates or not seconds:
            return None
        return float(sum(one.seconds * each for one, each in zip(several, rates, strict=True))) / seconds

    return replace(
        several[0],
        sizes=several[0].sizes if len(several) == 1 else {},
        calls=sum(one.calls for one in several),
        runs=sum(one.runs for one in several),
        seconds=seconds,
        bytes_per_second=rate("bytes_per_second"),
        operations_per_second=rate("operations_per_second"),
    )


def _times(group: Group, profile: Profile, taken: Taken) -> list[KernelTime]:
    """What a group took in calls of some sizes, and then what each kernel inside of it did."""
    within = [_time(group_of(part), profile, taken, (part,)) for part in group.inner]
    own = _time(group, profile, taken, group.parts)
    return [own, *(replace(one, inside=True) for one in within)]


def _time(group: Group, profile: Profile, taken: Taken, parts: Sequence[Any]) -> KernelTime:
    numbers = [number for number, one in enumerate(profile.parts) if any(one is part for part in parts)]
    numbers = [number for number in numbers if number < len(taken.counters)]
    seconds = sum(taken.seconds(number) for number in numbers)
    runs = max((int(taken.counters[number, 1]) for number in numbers), default=0)
    moved, operations = _work(group, taken.values)
    rate = runs / seconds if seconds else 0.0
    return KernelTime(
        f"{group.kind}: {group.text or 'copy'}",
        taken.values,
        taken.calls,
        runs,
        seconds,
        0.0,
        moved * rate if moved else None,
        operations * rate if operations else None,
    )


def _work(group: Group, values: Mapping[str, int]) -> tuple[int, int]:
    """Bytes that a run reads and writes, and its operations; zeros where these are not known."""
    if group.kind in ("loop", "branch"):
        return 0, 0
    try:
        moved = sum(_bytes(part, values) for part in group.parts)
        operations = sum(_operations(node, values) for node in group.nodes)
    except KeyError:  # a size that differs from round to round
        return 0, 0
    return moved, operations


def _bytes(part: Any, values: Mapping[str, int]) -> int:
    """What a run of a part reads and writes: of arrays that it needs a slice of, that slice."""
    if isinstance(part, Nest):
        stored = {id(store.cone.root): store.cone.root for store in part.stores}.values()
        return sum(_size(node, values) for node in stored) + sum(
            min(_size(leaf, values), extents.evaluated(steps, values) * np.dtype(leaf.dtype).itemsize)
            for leaf, steps in part.reads
        )
    node = part if isinstance(part, Node) else part.node
    return sum(_size(one, values) for one in (*node.inputs, node))


def _size(node: Node, values: Mapping[str, int]) -> int:
    return _elements(node, values) * np.dtype(node.dtype).itemsize


def _operations(node: Node, values: Mapping[str, int]) -> int:
    if node.operation in FREE or node.operation == "call":
        return 0
    if node.operation == "matmul":
        return 2 * _elements(node, values) * extents.evaluated(node.inputs[0].shape[-1], values)
    return _elements(node.inputs[0] if node.operation == "reduce" else node, values)


def _elements(node: Node, values: Mapping[str, int]) -> int:
    return extents.evaluated(extents.product(node.shape), values)
