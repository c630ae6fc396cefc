"""Object files brought into the process by what little they need: sections in pages, and addresses written into them.

The code that `codegen` makes for x86 reaches everything by addresses of 64 bits, so there is one kind of relocation.
"""

import ctypes
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.native.pages import Pages

X86_64, ADDRESS_64 = 62, 1
RELOCATIONS, SYMBOLS, UNWINDING, EMPTY = 4, 2, 0x70000001, 8
WRITABLE, ALLOCATED = 1, 2
"""Numbers of the format: machine and relocation, types of sections, and flags of them."""
LINE = 64


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


@dataclass(eq=False)
class Placed:
    """What an object file defines, in this process: for as long as anybody holds this, unless it is `for_good`.

    `symbols`: the addresses of its functions and variables.
    """

    symbols: Mapping[str, int]
    address: int
    for_good: bool = True
    memory: tuple[Any, ...] = field(default=(), repr=False)


def place(content: bytes, symbol: str, address_of: Callable[[str], int]) -> Placed | None:
    """An object file's code, ready to be called at `symbol`; None where it needs what is not done here.

    `address_of` finds what it does not define.
    """
    if content[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", content, 18)[0] != X86_64:
        return None
    sections = _sections(content)
    kept = {
        i: one
        for i, one in enumerate(sections)
        if one.flags & ALLOCATED and one.size and one.kind != UNWINDING
    }
    relocations = [one for one in sections if one.kind == RELOCATIONS and one.info in kept]
    if any(
        kind & 0xFFFFFFFF != ADDRESS_64
        for one in relocations
        for _, kind, _ in struct.iter_unpack("<QQq", _content(content, one))
    ):
        return None
    starts, memory = _taken(kept)
    table = next(one for one in sections if one.kind == SYMBOLS)
    names = _content(content, sections[table.link])
    found: dict[str, int] = {}
    values: list[Callable[[], int]] = []
    for name_at, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", _content(content, table)):
        name = names[name_at : names.index(b"\0", name_at)].decode()
        if section in starts:
            values.append((starts[section] + value).__int__)
            if info >> 4:
                found[name] = starts[section] + value
        else:
            values.append(lambda name=name: address_of(name))  # type: ignore[misc]
    for i, one in kept.items():
        if one.kind != EMPTY:
            ctypes.memmove(starts[i], _content(content, one), one.size)
    for one in relocations:
        for offset, kind, addend in struct.iter_unpack("<QQq", _content(content, one)):
            ctypes.c_int64.from_address(starts[one.info] + offset).value = values[kind >> 32]() + addend
    memory[0].close()
    return Placed(found, found[symbol], False, memory)


def _sections(content: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    return [_Section(*struct.unpack_from("<IIQQQQIIQQ", content, start + i * size)) for i in range(count)]


def _content(content: bytes, one: _Section) -> bytes:
    return content[one.offset : one.offset + one.size]


def _taken(kept: Mapping[int, _Section]) -> tuple[dict[int, int], tuple[Pages, Any]]:
    """Where each section goes: what is written to when it runs lies elsewhere than code and constants."""
    ends = [0, 0]
    places: dict[int, tuple[int, int]] = {}
    for i, one in kept.items():
        which = int(bool(one.flags & WRITABLE))
        begin = -(-ends[which] // one.alignment) * one.alignment
        places[i], ends[which] = (which, begin), begin + one.size
    pages, words = Pages(ends[0]), ctypes.create_string_buffer(ends[1] + LINE)
    bases = pages.address, -(-ctypes.addressof(words) // LINE) * LINE
    return {i: bases[which] + begin for i, (which, begin) in places.items()}, (pages, words)
