"""A minimal ELF loader: copy sections to pages, and apply relocations.

It supports objects for x86-64 and aarch64. Our x86 code refers to everything by 64-bit addresses. Other instructions
hold distances: then writable data lies in the pages behind the code, and external symbols are reached through slots
(GOT and PLT entries) between them.
"""

import ctypes
import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jitkernels.codegen.object_cache import objects_of
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.runtime.loading.code_memory import Pages
from jitkernels.runtime.loading.elf_relocations import AARCH64, JUMPS, KINDS, REACH, SLOT_BYTES, X86_64, Kind

HERE = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
RELOCATIONS, SYMBOLS, SHT_NOBITS = 4, 2, 8
WRITABLE, ALLOCATED, THREADS_OWN = 1, 2, 0x400
OUTSIDE, RESERVED, ABSOLUTE, WEAK = 0, 0xFF00, 0xFFF1, 2
"""ELF constants: section types, section flags, special section indices, and symbol binding."""
UNWINDING = b".eh_frame"
"""Not loaded, as no exception unwinds through compiled code."""


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
class LoadedObject:
    """A loaded object file. The code lives as long as this object, unless it is `for_good`.

    `symbols`: the addresses of its functions and variables.
    """

    symbols: Mapping[str, int]
    address: int
    for_good: bool = True
    memory: tuple[Any, ...] = field(default=(), repr=False)


def load_object(content: bytes, symbol: str, address_of: Callable[[str], int]) -> LoadedObject | None:
    """Load an object file, or a bundle, with its entry at `symbol`; None if it has another format or machine.

    `address_of` resolves external symbols. Raises LookupError for unresolved symbols and unsupported relocations.
    """
    try:
        first, *others = objects_of(content)
        if any(not _is_loadable(one) for one in (first, *others)):
            return None
        loaded = [_ObjectLoading(one, address_of).done() for one in others]
        known = {name: address for one in loaded for name, address in one.symbols.items()}
        whole = _ObjectLoading(first, lambda name: known[name] if name in known else address_of(name)).done(symbol)
        whole.memory += tuple(one.memory for one in loaded)
        return whole
    except (struct.error, IndexError, ValueError) as error:
        raise LookupError(f"the object file is damaged: {error}") from error


def _is_loadable(content: bytes) -> bool:
    """Whether it is an object file in the format and for the machine of this process."""
    return content[:6] == b"\x7fELF\x02\x01" and HERE.get(platform.machine().lower()) == _machine_of(content)


def _machine_of(content: bytes) -> int:
    number: int = struct.unpack_from("<H", content, 18)[0]
    return number


class _ObjectLoading:
    """The state of loading one object file."""

    def __init__(self, content: bytes, address_of: Callable[[str], int]) -> None:
        self.content, self.address_of = content, address_of
        self.machine = _machine_of(content)
        relocation_kinds = KINDS[self.machine]
        (start,) = struct.unpack_from("<Q", content, 40)
        size, count, names = struct.unpack_from("<HHH", content, 58)
        self.sections = [_Section(*struct.unpack_from("<IIQQQQIIQQ", content, start + i * size)) for i in range(count)]
        texts = self._content(self.sections[names])
        self.loaded = {
            i: section
            for i, section in enumerate(self.sections)
            if section.flags & ALLOCATED and section.size and not texts.startswith(UNWINDING, section.name)
        }
        if any(section_.flags & THREADS_OWN for section_ in self.loaded.values()):
            raise LookupError("thread-local variables are not supported")
        self.symbols = self._symbols()
        self.relocations: list[tuple[int, int, int, int, Kind]] = []
        for section_ in self.sections:
            if section_.kind != RELOCATIONS or section_.info not in self.loaded:
                continue
            for offset, info, addend in struct.iter_unpack("<QQq", self._content(section_)):
                kind = relocation_kinds.get(info & 0xFFFFFFFF)
                if kind is None:
                    raise LookupError(f"relocations of type {info & 0xFFFFFFFF} are not supported")
                self.relocations.append((section_.info, offset, info >> 32, addend, kind))

    def done(self, symbol: str = "") -> LoadedObject:
        """Copy everything to memory, relocated; without a symbol it has no entry."""
        is_near = any(kind.near for *_, kind in self.relocations)
        slot_symbols = dict.fromkeys(number for _, _, number, _, kind in self.relocations if kind.to != "value")
        if not is_near:
            slot_symbols = {}
        # Code refers to writable data by address, so that it may lie anywhere, or by distance.
        code, code_size = _laid({i: section_ for i, section_ in self.loaded.items() if not section_.flags & WRITABLE})
        data, data_size = _laid({i: section_ for i, section_ in self.loaded.items() if section_.flags & WRITABLE})
        slots_at = -(-code_size // SLOT_BYTES) * SLOT_BYTES
        pages = Pages(slots_at + SLOT_BYTES * len(slot_symbols), data_size if is_near else 0)
        memory: tuple[Any, ...] = (pages,)
        if is_near:
            data_at = pages.data_address
        else:
            words = ctypes.create_string_buffer(data_size + CACHE_LINE_BYTES)
            memory, data_at = (pages, words), -(-ctypes.addressof(words) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        starts = {i: pages.address + position for i, position in code.items()} | {
            i: data_at + position for i, position in data.items()
        }
        positions = {i: (False, position) for i, position in code.items()} | {
            i: (True, position) for i, position in data.items()
        }
        images = bytearray(slots_at + SLOT_BYTES * len(slot_symbols)), bytearray(data_size)
        for i, (is_data, position) in positions.items():
            section_ = self.loaded[i]
            if section_.kind != SHT_NOBITS:
                images[is_data][position : position + section_.size] = self._content(section_)
        values: dict[int, int] = {}
        slots = {number: slots_at + SLOT_BYTES * i for i, number in enumerate(slot_symbols)}
        for number, position in slots.items():
            values[number] = self._value(number, starts)
            images[0][position : position + SLOT_BYTES] = struct.pack("<Q", values[number]) + JUMPS[self.machine]
        for section, offset, number, addend, kind in self.relocations:
            if number not in values:
                values[number] = self._value(number, starts)
            is_data, position = positions[section]
            value, where = values[number] + addend, starts[section] + offset
            if kind.to == "slot":
                value = pages.address + slots[number] + addend
            elif kind.to == "call" and not -REACH[self.machine] <= value - where < REACH[self.machine]:
                value = pages.address + slots[number] + 8 + addend
            kind.write(images[is_data], position + offset, value, where)
        for address, text in zip((pages.address, data_at), images, strict=True):
            if text:
                ctypes.memmove(address, (ctypes.c_char * len(text)).from_buffer(text), len(text))
        pages.close()
        result = {
            symbol.name.decode(): starts[symbol.section] + symbol.value
            for symbol in self.symbols
            if symbol.bound and symbol.section in starts
        }
        if symbol and symbol not in result:
            raise LookupError(f"it does not define {symbol}")
        return LoadedObject(result, result.get(symbol, 0), False, memory)

    def _content(self, section: _Section) -> bytes:
        return self.content[section.offset : section.offset + section.size]

    def _symbols(self) -> list[_Symbol]:
        table = next((section for section in self.sections if section.kind == SYMBOLS), None)
        if table is None:
            return []
        names = self._content(self.sections[table.link])
        return [
            _Symbol(names[at : names.index(b"\0", at)], info >> 4, section, value)
            for at, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", self._content(table))
        ]

    def _value(self, number: int, starts: Mapping[int, int]) -> int:
        """The address of a symbol."""
        symbol = self.symbols[number]
        if symbol.section in starts:
            return starts[symbol.section] + symbol.value
        if symbol.section == ABSOLUTE:
            return symbol.value
        if symbol.section != OUTSIDE:
            raise LookupError(
                f"{symbol.name.decode() or 'a symbol'} is in section {symbol.section}, which is not loaded"
            )
        if not number:
            return 0
        try:
            return self.address_of(symbol.name.decode())
        except (AttributeError, LookupError):
            if symbol.bound == WEAK:
                return 0
            raise


def _laid(sections: Mapping[int, _Section]) -> tuple[dict[int, int], int]:
    """Lay sections out one behind the other: their offsets, and the total size."""
    offsets, end = {}, 0
    for i, section in sections.items():
        offsets[i] = -(-end // max(section.alignment, 1)) * max(section.alignment, 1)
        end = offsets[i] + section.size
    return offsets, end
