"""When the arrays between the steps of a program are needed, from the first step that touches each to the last."""

from collections.abc import Mapping, Sequence

import numpy as np

from jitkernels.graph import extents
from jitkernels.graph.arena import Buffer
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.epilogues import Step, read_by, written_by
from jitkernels.graph.extents import Number
from jitkernels.graph.flows import Flow
from jitkernels.graph.ir import Node
from jitkernels.graph.nests import Nest
from jitkernels.graph.products import Product
from jitkernels.graph.schedule import Single

LINE = 64


def bytes_of(node: Node) -> Number:
    """Bytes of an array in whole lines, and one more, so that arrays of round sizes lie differently in the caches."""
    size = np.dtype(node.dtype).itemsize
    return (extents.product(node.shape) * size + 2 * LINE - 1) // LINE * LINE


def lifetimes(steps: Sequence[Step], arrays: Mapping[int, Array], made: Mapping[int, Node]) -> list[Buffer]:
    """When the arrays are needed that are `made` at words of the frame.

    A product and the nest behind it are one step, as its rows may be handed on. What NumPy reads is needed to the end:
    what it gives may be a view.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    time = 0
    is_behind_product = False
    for step in steps:
        if isinstance(step, Nest) and step.is_empty:
            continue
        time += not (is_behind_product and isinstance(step, Nest))
        is_behind_product = isinstance(step, Product)
        words = [arrays[key].word for key in (*read_by(step), *map(id, written_by(step))) if key in arrays]
        if isinstance(step, Flow):
            words += [word for body in step.bodies.values() for word in body.words]
        for word in words:
            first.setdefault(word, time)
            last[word] = len(steps) + 1 if isinstance(step, Single) else max(time, last.get(word, 0))
    return [
        Buffer(word, bytes_of(node), first[word], last[word]) for word, node in made.items() if word in first
    ]
