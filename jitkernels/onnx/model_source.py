"""Where a model comes from, a file or bytes: large tensors are read from there when they are needed."""

import mmap
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jitkernels.core.aligned_memory import aligned_empty
from jitkernels.errors import ModelError
from jitkernels.onnx.detach_tensors import MIN_DETACHED_BYTES, Span, detach_tensors


class ModelSource(Protocol):
    """A serialized model. `folder`: where its external data lie, if it may have any."""

    folder: Path | None

    def detached(self) -> tuple[bytes, dict[int, Span]]:
        """The model without the data of large tensors, and where that lies, by the indices of initializers."""

    def read(self, span: Span) -> Any:
        """Some bytes, as an array."""

    def content(self) -> bytes:
        """The whole model."""


class ModelBytes:
    """A model in memory."""

    def __init__(self, content: bytes, name: str = "the bytes", folder: Path | None = None) -> None:
        self._content, self._name, self.folder = content, name, folder

    def __str__(self) -> str:
        return self._name

    def detached(self) -> tuple[bytes, dict[int, Span]]:
        return detach_tensors(memoryview(self._content))

    def read(self, span: Span) -> Any:
        return np.frombuffer(self._content, np.uint8, span.end - span.begin, span.begin)

    def content(self) -> bytes:
        return self._content


class ModelFile:
    """An open file. It may be renamed or deleted; a ModelError says so where it was written to since."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self.folder: Path | None = self._path.parent
        self._file = os.open(self._path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        weakref.finalize(self, os.close, self._file)
        self._state = self._now()

    def __str__(self) -> str:
        return str(self._path)

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns

    def detached(self) -> tuple[bytes, dict[int, Span]]:
        if self._state[0] < MIN_DETACHED_BYTES:
            return self.content(), {}
        with mmap.mmap(self._file, 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as content:
            return detach_tensors(content)

    def read(self, span: Span) -> Any:
        """Some bytes, as an array. Raises ModelError where the file was written to since it was opened."""
        data = aligned_empty((span.end - span.begin,), np.uint8)
        with memoryview(data) as view:
            begin = 0
            while begin < len(view) and (count := os.preadv(self._file, [view[begin:]], span.begin + begin)):
                begin += count
        if begin != data.size or self._now() != self._state:
            raise ModelError(f"{self}: the file was written to since the model was loaded: load it again")
        return data

    def content(self) -> bytes:
        return bytes(self.read(Span(0, self._state[0])))


def reduced(load: Callable[[Any], Any], source: ModelSource | None, *, has_external_data: bool) -> tuple[Any, ...]:
    """What pickles a model: a call of `load`, with its bytes, or with its path where others of its files are needed."""
    if source is None:
        raise ModelError("a model of more than 2 GB that was loaded from a ModelProto cannot be pickled")
    return load, (str(source) if has_external_data else source.content(),)
