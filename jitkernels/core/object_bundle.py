"""Several object files as one entry of the cache: a module that was compiled in parts is loaded as one."""

import itertools
import struct
from collections.abc import Sequence

MAGIC = b"\x7fJKOBJS\x01"
"""What no object file begins with."""
_LENGTH = struct.Struct("<Q")


def bundled(objects: Sequence[bytes]) -> bytes:
    """Join object files; the first one has the entry. A single one stays as it is."""
    if len(objects) == 1:
        return objects[0]
    lengths = b"".join(map(_LENGTH.pack, map(len, objects)))
    return b"".join([MAGIC, _LENGTH.pack(len(objects)), lengths, *objects])


def objects_of(content: bytes) -> list[bytes]:
    """The object files of a bundle, or of one object file. Raises ValueError for a damaged bundle."""
    if not content.startswith(MAGIC):
        return [content]
    at = len(MAGIC) + _LENGTH.size
    count = int.from_bytes(content[len(MAGIC) : at], "little")
    begin = at + count * _LENGTH.size
    if begin > len(content):
        raise ValueError(f"a bundle of {count} object files has {len(content)} bytes")
    lengths = [int.from_bytes(content[i : i + _LENGTH.size], "little") for i in range(at, begin, _LENGTH.size)]
    if begin + sum(lengths) != len(content):
        raise ValueError(f"a bundle of {count} object files has {len(content)} bytes: expected {begin + sum(lengths)}")
    ends = [*itertools.accumulate(lengths, initial=begin)]
    return [content[start:end] for start, end in itertools.pairwise(ends)]
