"""What calls of a compiled function look through: a table, and a chain of links, each for a kind of arguments.

A table has the callable that serves what nothing else does:

    table: slow callable, first link, number of calls that look at links, or are in the function of one, the name by
        which results are told where to go, or null, the callable that serves what the function of a link refuses, or
        null
    link: next link, function, context, number of arguments by position, of those by name, of watches, whether it
        stays behind others, an alarm or null, the flags that it was called for, how often these are skipped, names,
        watches
    watch: a dict and a key in it, or null and a closure cell; the object that has to be there still

The number changes while Python's lock is held, so that it needs no atomic steps. Links that are taken out live until
it is 0.
"""

import ctypes
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
UNDER_WAY, OUT_NAME, PLAIN = 2, 3, 4
"""Words of a table."""
FOR_PLAIN = 1
"""What the function of a link returns where it refuses: no object has this address."""
OUT = sys.intern("out")
CELL = 16
"""Bytes from the start of a cell to what it holds."""
LAST, NAMES = 6, 10
"""Words of a link: whether it stays behind others, and its names; those between are of `telling`."""


def new_table(slow: object, plain: object = None, *, takes_out: bool) -> Words:
    """A table without links; the caller keeps all of it alive as long as an object has it.

    `takes_out`: ``out`` is an argument like others.
    """
    last = 0 if plain is None else id(plain)
    return np.array([id(slow), 0, 0, 0 if takes_out else id(OUT), last], np.int64)


Watch = tuple[object, object, object]
"""A dict, a key and a value; or None, a closure cell or Word and what it holds."""


class Word:
    """A word of memory that is watched as if it were what a cell holds."""

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
    alarm: object = None,
) -> Words:
    """A link for a function that takes so many arguments, and others by these names; `is_last`: it stays behind others.

    Whoever has it enter a table keeps it, names, watches and alarm alive, from before on.
    """
    words = [0, function, context, count, len(names), len(watches), int(is_last)]
    words += [0 if alarm is None else id(alarm), 0, 0, *map(id, names)]
    for place, key, value in watches:
        at = key.address - CELL if isinstance(key, Word) else id(key)
        words += [0 if place is None else id(place), at, id(value)]
    return np.array(words, np.int64)


def enter(table: Words, made: Words) -> None:
    """Put a link in front of the chain of a table, or at its end for good."""
    if not made[LAST]:
        made[0] = table[1]
        table[1] = made.ctypes.data
        return
    end = table.ctypes.data + table.itemsize
    while behind := ctypes.c_int64.from_address(end).value:
        end = behind
    ctypes.c_int64.from_address(end).value = made.ctypes.data


def clear(table: Words) -> None:
    """Take all links out; they have to live until the table is quiet.

    None leads to another then, so that a call which is under way moves none to the front.
    """
    at = table.ctypes.data + table.itemsize
    while at:
        word = ctypes.c_int64.from_address(at)
        at, word.value = word.value, 0


def is_quiet(table: Words) -> bool:
    """Whether no call is among its links."""
    return not table[UNDER_WAY]
