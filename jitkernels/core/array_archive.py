"""Array archives: files of a header in JSON and of arrays, which are read into memory aligned to cache lines.

An archive is a magic line, the length and SHA-256 of the header, the header, and the arrays. Archives are written
atomically, and what is not as it was written is refused: the header by its SHA-256, the arrays by their CRC-32, which
takes as long as reading them. Arrays are not mapped: a file that somebody truncates would end the process later.
"""

import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.core.aligned_memory import aligned_empty
from jitkernels.core.atomic_files import publish
from jitkernels.core.hashing import sha256

MAGIC = b"jitkernels arrays, format 1\n"
LENGTH_BYTES, CHECKSUM_BYTES = 8, 32
MAX_ARRAY_HEADER_BYTES = 1 << 26
"""The most bytes of a header; a larger length is damage."""
PIECE_BYTES = 1 << 20
"""Bytes that are read and checked at once: they stay in the cache between the two."""


class DamagedError(Exception):
    """A file that is no archive, or not as it was written."""


class ArrayArchive:
    """An archive whose header is intact. Raises OSError where it cannot be read, DamagedError where it is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        start_bytes = len(MAGIC) + LENGTH_BYTES + CHECKSUM_BYTES
        with open(path, "rb", opener=_opener) as file:
            start = file.read(start_bytes)
            if len(start) != start_bytes or not start.startswith(MAGIC):
                raise DamagedError("it is no array archive of this format")
            length = int.from_bytes(start[len(MAGIC) :][:LENGTH_BYTES], "little")
            text = file.read(min(length, MAX_ARRAY_HEADER_BYTES))
        if len(text) != length or sha256(text).digest() != start[-CHECKSUM_BYTES:]:
            raise DamagedError("its header is damaged")
        stored = json.loads(text)
        self.header: dict[str, Any] = stored["header"]
        self._arrays, self._checksum = stored["arrays"], int(stored["checksum"])
        self._begin = start_bytes + length

    def arrays(self) -> list[Any]:
        """The arrays, in memory of their own. Raises OSError or DamagedError."""
        results, checksum = [], 0
        with open(self.path, "rb", buffering=0, opener=_opener) as file:
            for begin, dtype, shape in self._arrays:
                array = aligned_empty(shape, dtype)
                file.seek(self._begin + begin)
                content: Any = array.reshape(-1).view(np.uint8)
                with memoryview(content) as view:
                    done = 0
                    while done < len(view) and (count := file.readinto(view[done : done + PIECE_BYTES])):
                        checksum = zlib.crc32(view[done : done + count], checksum)
                        done += count
                    if done < len(view):
                        raise DamagedError("it ends too early")
                results.append(array)
        if checksum != self._checksum:
            raise DamagedError("its arrays are damaged")
        return results


def _opener(path: str, flags: int) -> int:
    """Open without waiting for a writer, if the path is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))


def write(path: Path, header: dict[str, Any], arrays: Sequence[Any]) -> bool:
    """Write an archive of C-ordered arrays; whether that succeeded, as `publish` says."""
    parts: list[bytes | memoryview] = []
    listed = []
    end = checksum = 0
    for array in arrays:
        elements: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        content = memoryview(elements)
        listed.append((end, array.dtype.str, array.shape))
        end += content.nbytes
        checksum = zlib.crc32(content, checksum)
        parts.append(content)
    stored = {"header": header, "arrays": listed, "checksum": checksum}
    text = json.dumps(stored, separators=(",", ":")).encode()
    return publish(path, MAGIC, len(text).to_bytes(LENGTH_BYTES, "little"), sha256(text).digest(), text, *parts)
