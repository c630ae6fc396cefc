"""Objects that came with pickles: an archive in memory, so that a process starts warm though its own cache is empty.

They are used as those of kernel archives (`jitkernels.codegen.kernel_archive`) are, under the same condition: they were
built for the same processor, package, NumPy and Python. What is for another environment is left out, and compiled here.
"""

import threading
import zlib
from collections.abc import Mapping
from typing import Any

MAX_CARRIED_BYTES = 1 << 26
"""The most bytes of compressed objects that a process holds; those that came first make room."""


class CarriedObjects:
    """Compressed objects by the hash of their source, and tuning records by number of threads and file name."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.records: dict[str, dict[str, Any]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, key: str) -> bytes | None:
        """Return an object by the hash of its source, or None."""
        packed = self.objects.get(key)
        return None if packed is None else zlib.decompress(packed)

    def admit(self, objects: Mapping[str, bytes], records: Mapping[str, Mapping[str, Any]]) -> None:
        """Add compressed objects and records. Expects that they are for this environment."""
        with self._lock:
            for key, packed in objects.items():
                if key not in self.objects:
                    self._bytes += len(packed)
                    self.objects[key] = packed
            for threads, listed in records.items():
                self.records.setdefault(threads, {}).update(listed)
            while self._bytes > MAX_CARRIED_BYTES:
                self._bytes -= len(self.objects.pop(next(iter(self.objects))))


carried = CarriedObjects()
"""The objects of this process."""
