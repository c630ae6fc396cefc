"""Load each object with LLVM's loader too and compare the code; in a process of its own, as code is never unloaded."""

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.base import schemas
from jitkernels.runtime.loading import elf_loader, loader, mcjit_loader

EXECUTABLE = 4
seen: list[tuple[bytes, str, Any]] = []
load_object = elf_loader.load_object


def watched(content: bytes, symbol: str, address_of: Any) -> Any:
    address = load_object(content, symbol, address_of)
    seen.append((content, symbol, address))
    return address


def compare(content: bytes, symbol: str, ours: Any) -> None:
    """Compare the bytes of the code section outside relocations: the copies' data addresses differ."""
    reading = elf_loader._ObjectLoading(content, lambda _: 0)
    for symbol_entry in reading.symbols:
        if symbol_entry.section == 0 and symbol_entry.name:
            llvm.add_symbol(symbol_entry.name.decode(), ours.address)  # any address will do
    theirs = mcjit_loader.mapped(content, symbol, ()).address
    entry = next(symbol_entry for symbol_entry in reading.symbols if symbol_entry.name.decode() == symbol)
    section = reading.sections[entry.section]
    assert section.flags & EXECUTABLE
    codes = [bytearray(ctypes.string_at(at - entry.value, section.size)) for at in (ours.address, theirs)]
    for where, offset, _, _, kind in reading.relocations:
        if where == entry.section:
            size = 4 if kind.near else 8
            for code in codes:
                code[offset : offset + size] = bytes(size)
    assert codes[0] == codes[1], symbol


def main() -> tuple[int, int]:
    """Print the number of objects and of kinds of relocations."""
    vars(loader)["load_object"] = watched
    for row in [*schemas.values()]:
        jk.KernelFuncs.cache().at(next(case.attr for case in row.sweep() if "ci" in case.tags))
    x = np.linspace(0.0, 1.0, 200_000)
    assert np.allclose(jk.vexp(x[::2]), np.exp(x[::2]))
    assert np.allclose(jk.vexp(list(range(3))), np.exp(range(3)))
    assert np.allclose(jk.jit(lambda x: np.exp(x) * 2 + np.sin(x))(x), np.exp(x) * 2 + np.sin(x))
    compared = [entry for entry in seen if entry[2] is not None]
    for entry in compared:
        compare(*entry)
    return len(compared), len({symbol.rpartition("_")[0] for _, symbol, _ in compared})
