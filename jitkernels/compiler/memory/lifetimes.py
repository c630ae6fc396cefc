"""When the arrays between the steps of a program are needed, from the first step that touches each to the last.

What is done at one time is a unit: a step, or a product and the nest behind it, as its rows may be handed on. A unit
may come again (see `recomputing`); what it writes is not needed between the last that reads it and then.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jitkernels.graph import extents
from jitkernels.graph.arena import Buffer
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.epilogues import Step, read_by, written_by
from jitkernels.graph.extents import Number
from jitkernels.graph.flows import Flow
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.kernel_calls import KernelCall
from jitkernels.graph.nests import Nest
from jitkernels.graph.products import Product
from jitkernels.graph.schedule import Single

LINE = 64
Unit = tuple[Step, ...]


def bytes_of(node: Node) -> Number:
    """Bytes of an array in whole lines, and one more, so that arrays of round sizes lie differently in the caches."""
    size = np.dtype(node.dtype).itemsize
    return (extents.product(node.shape) * size + 2 * LINE - 1) // LINE * LINE


def units_of(steps: Sequence[Step]) -> list[Unit]:
    """What is done at one time."""
    found: list[list[Step]] = []
    waits = False
    for step in steps:
        is_nothing = isinstance(step, Nest) and step.is_empty
        if waits and isinstance(step, Nest):
            found[-1].append(step)
        else:
            found.append([step])
        waits = isinstance(step, Product) or (waits and is_nothing)
    return [tuple(one) for one in found]


@dataclass(frozen=True)
class Use:
    """The words of arrays that a unit reads, but for what it made, and writes.

    `lasts`: they are needed to the end, as what NumPy gives may be a view.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    lasts: bool


def use_of(unit: Unit, arrays: Mapping[int, Array]) -> Use:
    """What a unit uses."""
    reads: set[int] = set()
    writes: set[int] = set()
    for step in unit:
        if isinstance(step, Nest) and step.is_empty:
            continue
        reads |= {arrays[key].word for key in read_by(step) if key in arrays} - writes
        writes |= {arrays[id(node)].word for node in written_by(step) if id(node) in arrays}
        if isinstance(step, Flow):
            writes |= {word for body in step.bodies.values() for word in body.words}
    return Use(frozenset(reads), frozenset(writes), any(isinstance(step, Single) for step in unit))


def stays(unit: Unit, graph: Graph) -> bool:
    """Whether what comes before a unit stays before it, and so with what comes behind: not only results count."""
    checks = set(map(id, graph.checks))
    return any(
        not isinstance(step, Nest | Product | KernelCall)
        or any(id(node) in checks for node in written_by(step))
        for step in unit
    )


def work_of(unit: Unit) -> int:
    """Additions, about, in the call that was traced."""
    return sum(extents.value_of(step.work) for step in unit if isinstance(step, Nest | Product | KernelCall))


def spans_of(order: Sequence[int], uses: Sequence[Use]) -> dict[int, list[tuple[int, int]]]:
    """By words: from when to when each is needed, if units are done in some order."""
    again = {unit for unit, count in Counter(order).items() if count > 1}
    found: dict[int, list[tuple[int, int]]] = {}
    for time, unit in enumerate(order):
        use = uses[unit]
        last = len(order) + 1 if use.lasts else time
        for word in use.reads | use.writes:
            known = found.setdefault(word, [])
            if not known or (unit in again and word in use.writes):
                known.append((time, last))
            else:
                known[-1] = known[-1][0], max(last, known[-1][1])
    return found


def lifetimes(
    order: Sequence[int],
    uses: Sequence[Use],
    made: Mapping[int, Node],
    inside: Mapping[int, tuple[int, int]] | None = None,
) -> list[Buffer]:
    """When the arrays are needed that are `made` at words of the frame; for `inside` see `inside_of`."""
    spans = spans_of(order, uses)
    return [
        Buffer(word, bytes_of(node), tuple(spans[word]), (inside or {}).get(word))
        for word, node in made.items()
        if word in spans
    ]


def inside_of(units: Sequence[Unit]) -> dict[int, tuple[int, int]]:
    """By words: of the steps inside of a loop or branch, the first and the last that need what no other ones need.

    What is made and needed in one stage of a round alone is made anew in the next round. Groups are told which of
    their words may have memory of others.
    """
    found: dict[int, tuple[int, int]] = {}
    for flow in (step for unit in units for step in unit if isinstance(step, Flow)):
        groups = [group for body in flow.bodies.values() for _, group in body.stages if group]
        spans: dict[int, tuple[int, int]] = {}
        steps = itertools.count()
        for group in groups:
            lasting = {group.arrays[id(node)].word for node in group.program.graph.outputs}
            words = {
                group.program.words[id(node)]: group.words[id(node)]
                for node in group.program.made
                if id(node) in group.words and group.program.words[id(node)] not in lasting
            }
            for number, step in zip(steps, group.steps, strict=False):
                use = use_of((step,), group.arrays)
                for word in (use.reads | use.writes) & words.keys():
                    spans[words[word]] = spans.get(words[word], (number, number))[0], number
        apart = {
            word: (first, last)
            for word, (first, last) in spans.items()
            if any(begin > last or end < first for begin, end in spans.values())
        }
        for group in groups:
            group.sharing = apart.keys() & set(group.words.values())
        found |= apart
    return found
