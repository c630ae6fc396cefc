"""The inline cache of a compiled function: a table with a chain of links, one per specialization.

The table also has the fallback callables:

    table: slow callable, first link, number of calls in progress, the name of the ``out`` argument or null, the plain
        callable that serves calls from which a link's function bails out, or null
    link: next link, function, context, number of positional arguments, of keyword arguments, of watches, whether it
        stays last, reporter of floating-point errors or null, last reported flags, skip count, bailouts, names, watches
    watch (a guard): a dict and a key in it, or null and a closure cell; the object that must still be there

The counter changes under the GIL, so that it needs no atomics. Removed links live until it is 0.
"""

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
CALLS_IN_PROGRESS, OUT_NAME, PLAIN_FUNCTION_WORD = 2, 3, 4
"""Words of a table."""
BAILOUT = 1
"""A link function's return value for a bailout: no object has this address."""
OUT = sys.intern("out")
CELL = 16
"""Byte offset of a cell's value."""
STAYS_LAST, BAILOUTS, NAMES = 6, 10, 11
"""Words of a link: whether it stays last, its bailouts, and its names; others are those of `fp_flag_handler`."""
MANY_BAILOUTS = 64
"""Bailouts of a link, after which the slow callable serves one: it may choose the plain function for such calls."""
UNCOUNTED = -(2**62)
"""A number of bailouts that does not become many."""


def new_table(slow: object, plain: object = None, *, takes_out: bool) -> Words:
    """Return a table without links; the caller keeps it and its callables alive.

    `takes_out`: ``out`` is an ordinary argument.
    """
    last = 0 if plain is None else id(plain)
    return np.array([id(slow), 0, 0, 0 if takes_out else id(OUT), last], np.int64)


Watch = tuple[object, object, object]
"""A dict, a key and a value; or None, a closure cell or Word and what it holds."""


class Word:
    """A word of memory that is guarded like a cell's value."""

    def __init__(self, address: int) -> None:
        self.address = address


def link(
    function: int,
    context: int,
    count: int,
    watches: Sequence[Watch] = (),
    names: Sequence[str] = (),
    *,
    is_last: bool = False,
    reporter: object = None,
) -> Words:
    """Return a link for a function of `count` positional and the named arguments; `is_last`.

    It stays behind other links. The caller keeps it, names, watches and reporter alive from before it enters a table.
    """
    words = [0, function, context, count, len(names), len(watches), int(is_last)]
    words += [0 if reporter is None else id(reporter), 0, 0, 0, *map(id, names)]
    for container, key, value in watches:
        key_address = key.address - CELL if isinstance(key, Word) else id(key)
        words += [0 if container is None else id(container), key_address, id(value)]
    return np.array(words, np.int64)


def enter(table: Words, link_: Words) -> None:
    """Insert a link at the front of a table's chain, or at its end for good."""
    if not link_[STAYS_LAST]:
        link_[0] = table[1]
        table[1] = link_.ctypes.data
        return
    end = table.ctypes.data + table.itemsize
    while next_link := ctypes.c_int64.from_address(end).value:
        end = next_link
    ctypes.c_int64.from_address(end).value = link_.ctypes.data


def clear(table: Words) -> None:
    """Remove all links, which must live until the table is quiet.

    They are unlinked from one another, so that a call in progress moves none to the front.
    """
    at = table.ctypes.data + table.itemsize
    while at:
        word = ctypes.c_int64.from_address(at)
        at, word.value = word.value, 0


def is_quiet(table: Words) -> bool:
    """Return whether no call is in progress."""
    return not table[CALLS_IN_PROGRESS]
