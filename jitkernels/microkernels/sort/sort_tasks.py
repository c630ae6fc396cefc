"""Parts of a row that is being sorted: tasks on a stack, the leftmost part on top, and where their keys are."""

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.sort.radix_sort import DIGIT

SLACK = 128
"""Elements behind each buffer that a network may read."""
PARTITIONS_PER_BIT = 2
"""Partitions on the way to a part, for each bit of the number of elements, before the rest is sorted by radix."""
TASK = 4
"""Words of a part that is to be sorted: its begin, its end, the place of its keys, and the partitions left to it."""
FIRST, SECOND, FIRST_EQUAL, SECOND_EQUAL = range(4)
"""Places of keys: the buffers; also of equal keys alone."""
MAX_TASKS = 3 * PARTITIONS_PER_BIT * 64


class Row(NamedTuple):
    """A row of n elements x, its results y, buffers of keys, room for a network's elements, tasks, and counts.

    wanted, wanted_count: the indices of the order statistics that y has; 0 of them where it has all elements.
    """

    x: Any
    y: Any
    n: int
    first: Any
    second: Any
    spare: Any
    tasks: Any
    counts: Any
    wanted: Any
    wanted_count: int


class Move(NamedTuple):
    """Where the keys of a part are, where its partition goes, and that of what is not below the pivot, and places."""

    source: Any
    to: Any
    other: Any
    to_place: int
    other_place: int


class Subrange(NamedTuple):
    """The elements of a task, and how many partitions are left to it."""

    begin: int
    end: int
    left: int


def words_of_scratch(digits: int) -> int:
    """Words of the tasks and the counts of a row."""
    return TASK * MAX_TASKS + digits * DIGIT


@inlined()
def push(row: Row, count: int, place: int, part: Subrange) -> int:
    """Add a task, if a result comes from it; return how many there are."""
    hits = 1 if row.wanted_count == 0 else 0
    for i in range(row.wanted_count):
        hits += 1 if part.begin <= row.wanted[i] < part.end else 0
    if hits == 0:
        return count
    task = offset(row.tasks, TASK * count)
    task[0], task[1], task[2], task[3] = part.begin, part.end, place, part.left
    return count + 1
