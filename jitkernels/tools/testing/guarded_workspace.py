"""Memory between the nests of compiled functions that lies between pages which nothing may touch."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from jitkernels.native import arenas
from jitkernels.testing.guards import UNTOUCHED, Guarded, Side


@dataclass
class Lent:
    """What calls were lent: how many pieces, and the addresses of those that they wrote beside."""

    pieces: int = 0
    damaged: list[int] = field(default_factory=list)
    out: dict[int, Guarded] = field(default_factory=dict, repr=False)


@contextmanager
def guarded_arenas(side: Side) -> Iterator[Lent]:
    """Let calls of functions that are compiled meanwhile compute between pages that nothing may touch.

    The page before ("start") or after ("end") the arrays between nests is next to them; a call that touches it ends the
    process. What is lent is no array that makes sense, so that values which nobody wrote show in the results.
    """
    lent, stack = Lent(), arenas.ON_STACK

    def lends(size: int) -> int:
        made = Guarded(np.full(size - arenas.HEAD, UNTOUCHED, np.uint8), side)
        address = made.array.ctypes.data - arenas.HEAD
        lent.out[address] = made
        lent.pieces += 1
        return int(address)

    def takes_back(address: int) -> None:
        if not lent.out.pop(address).intact():
            lent.damaged.append(address)

    functions = (
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lends),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(takes_back),
    )
    arenas.ON_STACK = 0
    arenas.watch(*(ctypes.cast(one, ctypes.c_void_p).value or 0 for one in functions))
    try:
        yield lent
    finally:
        arenas.watch(0, 0)
        arenas.ON_STACK = stack
    assert not lent.damaged, f"{len(lent.damaged)} calls wrote beside their memory"
    assert not lent.out, f"{len(lent.out)} calls kept their memory"
