"""ELF relocations of x86-64 and aarch64: patch addresses and distances into code and data.

Each relocation type is a function that patches bytes. It raises LookupError if the field is too narrow for the
distance.
"""

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

X86_64, AARCH64 = 62, 183
"""ELF machine numbers."""


class Kind(NamedTuple):
    """One relocation type.

    `write` takes bytes, an offset in them, the target's value, and the address of the patched place. `to`: the
    target: the ``value`` itself, its ``slot`` (GOT entry), which holds the address, or the ``call`` of it, which is
    direct if it is near, else through a jump (PLT entry). `near`: distances must be small.
    """

    write: Callable[[bytearray, int, int, int], None]
    to: str = "value"
    near: bool = True


def _plain(form: str, relative: bool) -> Callable[[bytearray, int, int, int], None]:
    """An absolute address, or a relative distance."""
    low, high = (0, 1 << 64) if form == "<Q" else (0, 1 << 32) if form == "<I" else (-(1 << 31), 1 << 31)

    def write(code: bytearray, at: int, value: int, address: int) -> None:
        number = value - address if relative else value
        if form == "<Q":
            number &= (1 << 64) - 1
        if not low <= number < high:
            raise LookupError(f"{number:#x} is too far for {struct.calcsize(form)} bytes")
        struct.pack_into(form, code, at, number)

    return write


def _field(shift: int, bits: int, scale: int, relative: bool = True) -> Callable[[bytearray, int, int, int], None]:
    """A signed distance in units of `scale` bytes, in a bit field of an instruction."""

    def write(code: bytearray, at: int, value: int, address: int) -> None:
        distance = (value - address if relative else value) // scale
        if not -(1 << bits - 1) <= distance < 1 << bits - 1:
            raise LookupError(f"{distance * scale:#x} is too far for {bits} bits")
        mask = (1 << bits) - 1
        (word,) = struct.unpack_from("<I", code, at)
        struct.pack_into("<I", code, at, word & ~(mask << shift) | (distance & mask) << shift)

    return write


def _page(shift: int) -> Callable[[bytearray, int, int, int], None]:
    """The distance of pages (`shift` 12) or addresses, in the two fields of ``adr`` and ``adrp``."""

    def write(code: bytearray, at: int, value: int, address: int) -> None:
        distance = (value >> shift) - (address >> shift)
        if not -(1 << 20) <= distance < 1 << 20:
            raise LookupError(f"{distance << shift:#x} is too far for a pair of instructions")
        (word,) = struct.unpack_from("<I", code, at)
        word = word & 0x9F00001F | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5
        struct.pack_into("<I", code, at, word)

    return write


def _low(scale: int) -> Callable[[bytearray, int, int, int], None]:
    """The low twelve bits of an address, in units of the access size."""

    def write(code: bytearray, at: int, value: int, address: int) -> None:  # all types have one signature
        low = value & 0xFFF
        if low % scale:
            raise LookupError(f"{value:#x} is not aligned to {scale} bytes")
        (word,) = struct.unpack_from("<I", code, at)
        struct.pack_into("<I", code, at, word & ~(0xFFF << 10) | low // scale << 10)

    return write


def _part(number: int) -> Callable[[bytearray, int, int, int], None]:
    """Sixteen bits of an address."""

    def write(code: bytearray, at: int, value: int, address: int) -> None:  # all types have one signature
        (word,) = struct.unpack_from("<I", code, at)
        struct.pack_into("<I", code, at, word & ~(0xFFFF << 5) | (value >> 16 * number & 0xFFFF) << 5)

    return write


_OF_X86_64 = {
    1: Kind(_plain("<Q", False), near=False),  # R_X86_64_64
    2: Kind(_plain("<i", True)),  # PC32
    4: Kind(_plain("<i", True), "call"),  # PLT32
    9: Kind(_plain("<i", True), "slot"),  # GOTPCREL
    10: Kind(_plain("<I", False)),  # 32
    11: Kind(_plain("<i", False)),  # 32S
    24: Kind(_plain("<Q", True), near=False),  # PC64
    41: Kind(_plain("<i", True), "slot"),  # GOTPCRELX
    42: Kind(_plain("<i", True), "slot"),  # REX_GOTPCRELX
}
_OF_AARCH64 = {
    257: Kind(_plain("<Q", False), near=False),  # R_AARCH64_ABS64
    258: Kind(_plain("<I", False)),  # ABS32
    260: Kind(_plain("<Q", True), near=False),  # PREL64
    261: Kind(_plain("<i", True)),  # PREL32
    **{263 + i: Kind(_part(i // 2), near=False) for i in range(7)},  # MOVW_UABS_G0, G0_NC, ..., G3
    273: Kind(_field(5, 19, 4)),  # LD_PREL_LO19
    274: Kind(_page(0)),  # ADR_PREL_LO21
    275: Kind(_page(12)),  # ADR_PREL_PG_HI21
    276: Kind(_page(12)),  # ADR_PREL_PG_HI21_NC
    277: Kind(_low(1)),  # ADD_ABS_LO12_NC
    278: Kind(_low(1)),  # LDST8_ABS_LO12_NC
    279: Kind(_field(5, 14, 4)),  # TSTBR14
    280: Kind(_field(5, 19, 4)),  # CONDBR19
    282: Kind(_field(0, 26, 4), "call"),  # JUMP26
    283: Kind(_field(0, 26, 4), "call"),  # CALL26
    284: Kind(_low(2)),  # LDST16_ABS_LO12_NC
    285: Kind(_low(4)),  # LDST32_ABS_LO12_NC
    286: Kind(_low(8)),  # LDST64_ABS_LO12_NC
    299: Kind(_low(16)),  # LDST128_ABS_LO12_NC
    311: Kind(_page(12), "slot"),  # ADR_GOT_PAGE
    312: Kind(_low(8), "slot"),  # LD64_GOT_LO12_NC
    314: Kind(_plain("<i", True), "call"),  # PLT32
}
KINDS: Mapping[int, Mapping[int, Kind]] = {X86_64: _OF_X86_64, AARCH64: _OF_AARCH64}
"""The supported relocation types of each machine."""

SLOT_BYTES = 16
JUMPS = {
    X86_64: bytes.fromhex("ff25f2ffffff 9090"),  # jmp *-14(%rip)
    AARCH64: bytes.fromhex("d0ffff58 00021fd6"),  # ldr x16, .-8; br x16
}
"""A jump to the address stored in front of it; a slot consists of both."""
REACH = {X86_64: 1 << 31, AARCH64: 1 << 27}
"""The reach of a direct call."""
