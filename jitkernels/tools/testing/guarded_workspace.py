"""Workspaces of compiled functions between guard pages."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from jitkernels.runtime import workspace_allocator
from jitkernels.tools.testing.guard_pages import UNTOUCHED, Guarded, Side


@dataclass
class PooledWorkspaces:
    """Statistics of pooled workspaces: how many, and the addresses of those with writes out of bounds."""

    pieces: int = 0
    damaged: list[int] = field(default_factory=list)
    out: dict[int, Guarded] = field(default_factory=dict, repr=False)


@contextmanager
def guarded_workspaces(side: Side) -> Iterator[PooledWorkspaces]:
    """Let calls of functions compiled inside the ``with`` block use workspaces between guard pages.

    The page before ("start") or after ("end") the arrays between loop nests is protected; a call that accesses it
    ends the process. Workspaces hold a pattern that is no plausible value, so that reads of unwritten memory show in
    the results.
    """
    pooled, stack = PooledWorkspaces(), workspace_allocator.ON_STACK

    def allocate(size: int) -> int:
        guarded = Guarded(np.full(size - workspace_allocator.HEADER_BYTES, UNTOUCHED, np.uint8), side)
        address = guarded.array.ctypes.data - workspace_allocator.HEADER_BYTES
        pooled.out[address] = guarded
        pooled.pieces += 1
        return int(address)

    def release(address: int) -> None:
        if not pooled.out.pop(address).intact():
            pooled.damaged.append(address)

    functions = (
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(allocate),
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release),
    )
    workspace_allocator.ON_STACK = 0
    workspace_allocator.hook(*(ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in functions))
    try:
        yield pooled
    finally:
        workspace_allocator.hook(0, 0)
        workspace_allocator.ON_STACK = stack
    assert not pooled.damaged, f"{len(pooled.damaged)} calls wrote outside their workspace"
    assert not pooled.out, f"{len(pooled.out)} calls did not release their workspace"
