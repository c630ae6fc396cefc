"""When the arrays between the steps of a program are needed, from the first step that touches each to the last.

What is done at one time is a unit: a step, or a product and the nest behind it, as its rows may be handed on. A unit
may come again (see `recomputing`); what it writes is not needed between the last that reads it and then.
"""

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


def lifetimes(order: Sequence[int], uses: Sequence[Use], made: Mapping[int, Node]) -> list[Buffer]:
    """When the arrays are needed that are `made` at words of the frame."""
    spans = spans_of(order, uses)
    return [Buffer(word, bytes_of(node), tuple(spans[word])) for word, node in made.items() if word in spans]
