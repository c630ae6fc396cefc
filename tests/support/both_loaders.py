"""Loads what the package loads by LLVM's loader as well, and compares the code: a process of its own, as code stays."""

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import jitkernels as jk
from jitkernels.attrs.base import rows
from jitkernels.native import linker, load, placing

EXECUTABLE = 4
seen: list[tuple[bytes, str, Any]] = []
place = placing.place


def watched(content: bytes, symbol: str, address_of: Any) -> Any:
    found = place(content, symbol, address_of)
    seen.append((content, symbol, found))
    return found


def compare(content: bytes, symbol: str, ours: Any) -> None:
    """Of the section of code all bytes but those that are written into it: one copy has its data elsewhere."""
    reading = placing._Placing(content, lambda _: 0)
    for one in reading.symbols:
        if one.section == 0 and one.name:
            llvm.add_symbol(one.name.decode(), ours.address)  # anything will do
    theirs = linker.mapped(content, symbol, ()).address
    entry = next(one for one in reading.symbols if one.name.decode() == symbol)
    section = reading.sections[entry.section]
    assert section.flags & EXECUTABLE
    codes = [bytearray(ctypes.string_at(at - entry.value, section.size)) for at in (ours.address, theirs)]
    for where, offset, _, _, kind in reading.changes:
        if where == entry.section:
            size = 4 if kind.near else 8
            for code in codes:
                code[offset : offset + size] = bytes(size)
    assert codes[0] == codes[1], symbol


def main() -> tuple[int, int]:
    """How many objects there were, and how many kinds of symbols."""
    vars(load)["place"] = watched
    for row in [*rows.values()]:
        jk.KernelFuncs.cache().at(next(case.attr for case in row.sweep() if "ci" in case.tags))
    x = np.linspace(0.0, 1.0, 200_000)
    assert np.allclose(jk.vexp(x[::2]), np.exp(x[::2]))
    assert np.allclose(jk.vexp(list(range(3))), np.exp(range(3)))
    assert np.allclose(jk.jit(lambda x: np.exp(x) * 2 + np.sin(x))(x), np.exp(x) * 2 + np.sin(x))
    compared = [one for one in seen if one[2] is not None]
    for one in compared:
        compare(*one)
    return len(compared), len({symbol.rpartition("_")[0] for _, symbol, _ in compared})
