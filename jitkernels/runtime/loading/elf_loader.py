"""Object files brought into the process by what little they need: sections in pages, and addresses written into them.

ELF objects of x86-64 and aarch64 are all that is known. Code for x86 that `codegen` makes reaches everything by
addresses of 64 bits. Elsewhere instructions hold distances: what is written to lies in the pages behind the code then,
and what is outside of the object is reached through slots between them.
"""

import ctypes
import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.native.pages import Pages
from jitkernels.native.relocations import AARCH64, JUMPS, KINDS, REACH, SLOT_BYTES, X86_64, Kind

HERE = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
RELOCATIONS, SYMBOLS, EMPTY = 4, 2, 8
WRITABLE, ALLOCATED, THREADS_OWN = 1, 2, 0x400
OUTSIDE, RESERVED, ABSOLUTE, WEAK = 0, 0xFF00, 0xFFF1, 2
"""Numbers of the format: types of sections, flags of them, sections of symbols, and how these are bound."""
UNWINDING = b".eh_frame"
"""What nobody looks at, as no exception passes through code of ours."""
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


class _Symbol(NamedTuple):
    name: bytes
    bound: int
    section: int
    value: int


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
    """An object file's code, ready to be called at `symbol`; None where it is of another format or machine.

    `address_of` finds what it does not define. Raises LookupError for what cannot be found, or is not known here.
    """
    if content[:6] != b"\x7fELF\x02\x01" or HERE.get(platform.machine().lower()) != _machine_of(content):
        return None
    try:
        return _Placing(content, address_of).done(symbol)
    except (struct.error, IndexError, ValueError) as error:
        raise LookupError(f"it is not a whole object file: {error}") from error


def _machine_of(content: bytes) -> int:
    number: int = struct.unpack_from("<H", content, 18)[0]
    return number


class _Placing:
    """One object file on its way into memory."""

    def __init__(self, content: bytes, address_of: Callable[[str], int]) -> None:
        self.content, self.address_of = content, address_of
        self.machine = _machine_of(content)
        kinds = KINDS[self.machine]
        (start,) = struct.unpack_from("<Q", content, 40)
        size, count, names = struct.unpack_from("<HHH", content, 58)
        self.sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", content, start + i * size)) for i in range(count)
        ]
        texts = self._content(self.sections[names])
        self.kept = {
            i: one
            for i, one in enumerate(self.sections)
            if one.flags & ALLOCATED and one.size and not texts.startswith(UNWINDING, one.name)
        }
        if any(one.flags & THREADS_OWN for one in self.kept.values()):
            raise LookupError("it has variables of each thread")
        self.symbols = self._symbols()
        self.changes: list[tuple[int, int, int, int, Kind]] = []
        for one in self.sections:
            if one.kind != RELOCATIONS or one.info not in self.kept:
                continue
            for offset, info, addend in struct.iter_unpack("<QQq", self._content(one)):
                kind = kinds.get(info & 0xFFFFFFFF)
                if kind is None:
                    raise LookupError(f"it has relocations of kind {info & 0xFFFFFFFF}, which is not known")
                self.changes.append((one.info, offset, info >> 32, addend, kind))

    def done(self, symbol: str) -> Placed:
        """All of it in memory."""
        is_near = any(kind.near for *_, kind in self.changes)
        wanted = dict.fromkeys(number for _, _, number, _, kind in self.changes if kind.to != "value")
        if not is_near:
            wanted = {}
        # Of what is written to when it runs code says addresses, so that it may lie anywhere, or distances.
        code, code_size = _laid({i: one for i, one in self.kept.items() if not one.flags & WRITABLE})
        data, data_size = _laid({i: one for i, one in self.kept.items() if one.flags & WRITABLE})
        slots_at = -(-code_size // SLOT_BYTES) * SLOT_BYTES
        pages = Pages(slots_at + SLOT_BYTES * len(wanted), data_size if is_near else 0)
        memory: tuple[Any, ...] = (pages,)
        if is_near:
            data_at = pages.data_address
        else:
            words = ctypes.create_string_buffer(data_size + LINE)
            memory, data_at = (pages, words), -(-ctypes.addressof(words) // LINE) * LINE
        starts = {i: pages.address + at for i, at in code.items()} | {
            i: data_at + at for i, at in data.items()
        }
        places = {i: (False, at) for i, at in code.items()} | {i: (True, at) for i, at in data.items()}
        texts = bytearray(slots_at + SLOT_BYTES * len(wanted)), bytearray(data_size)
        for i, (is_data, at) in places.items():
            one = self.kept[i]
            if one.kind != EMPTY:
                texts[is_data][at : at + one.size] = self._content(one)
        values: dict[int, int] = {}
        slots = {number: slots_at + SLOT_BYTES * i for i, number in enumerate(wanted)}
        for number, at in slots.items():
            values[number] = self._value(number, starts)
            texts[0][at : at + SLOT_BYTES] = struct.pack("<Q", values[number]) + JUMPS[self.machine]
        for section, offset, number, addend, kind in self.changes:
            if number not in values:
                values[number] = self._value(number, starts)
            is_data, at = places[section]
            value, where = values[number] + addend, starts[section] + offset
            if kind.to == "slot":
                value = pages.address + slots[number] + addend
            elif kind.to == "call" and not -REACH[self.machine] <= value - where < REACH[self.machine]:
                value = pages.address + slots[number] + 8 + addend
            kind.write(texts[is_data], at + offset, value, where)
        for address, text in zip((pages.address, data_at), texts, strict=True):
            if text:
                ctypes.memmove(address, (ctypes.c_char * len(text)).from_buffer(text), len(text))
        pages.close()
        found = {
            one.name.decode(): starts[one.section] + one.value
            for one in self.symbols
            if one.bound and one.section in starts
        }
        if symbol not in found:
            raise LookupError(f"it does not define {symbol}")
        return Placed(found, found[symbol], False, memory)

    def _content(self, one: _Section) -> bytes:
        return self.content[one.offset : one.offset + one.size]

    def _symbols(self) -> list[_Symbol]:
        table = next((one for one in self.sections if one.kind == SYMBOLS), None)
        if table is None:
            return []
        names = self._content(self.sections[table.link])
        return [
            _Symbol(names[at : names.index(b"\0", at)], info >> 4, section, value)
            for at, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", self._content(table))
        ]

    def _value(self, number: int, starts: Mapping[int, int]) -> int:
        """The address of what a symbol stands for."""
        one = self.symbols[number]
        if one.section in starts:
            return starts[one.section] + one.value
        if one.section == ABSOLUTE:
            return one.value
        if one.section != OUTSIDE:
            raise LookupError(
                f"{one.name.decode() or 'a symbol'} is in section {one.section}, which is not loaded"
            )
        if not number:
            return 0
        try:
            return self.address_of(one.name.decode())
        except (AttributeError, LookupError):
            if one.bound == WEAK:
                return 0
            raise


def _laid(sections: Mapping[int, _Section]) -> tuple[dict[int, int], int]:
    """Where each section begins, one behind the other, and where the last one ends."""
    places, end = {}, 0
    for i, one in sections.items():
        places[i] = -(-end // max(one.alignment, 1)) * max(one.alignment, 1)
        end = places[i] + one.size
    return places, end
