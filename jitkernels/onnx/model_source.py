"""Where a model comes from, a file or bytes: large tensors are read from there when they are needed."""

import hashlib
import mmap
import os
import stat
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jitkernels.core.aligned_memory import aligned_empty
from jitkernels.errors import ModelError, shown
from jitkernels.onnx.detach_tensors import MIN_DETACHED_BYTES, Span, detach_tensors

PIECE_BYTES = 1 << 20
"""Bytes that are read and hashed at once: they stay in the cache between the two."""


class ModelSource(Protocol):
    """A serialized model. `folder`: where its external data lie, if it may have any."""

    folder: Path | None

    @property
    def size(self) -> int:
        """The bytes of the model."""

    def digest(self) -> str:
        """The SHA-256 of the model."""

    def detached(self) -> tuple[bytes, dict[int, Span]]:
        """The model without the data of large tensors, and where that lies, by the indices of initializers."""

    def read(self, span: Span) -> Any:
        """Some bytes, as an array."""

    def is_untouched(self) -> bool:
        """Whether it surely is what was read."""

    def content(self) -> bytes:
        """The whole model."""


class ModelBytes:
    """A model in memory."""

    def __init__(self, content: bytes, name: str = "the bytes", folder: Path | None = None) -> None:
        self._content, self._name, self.folder = content, name, folder

    def __str__(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        return len(self._content)

    def is_untouched(self) -> bool:
        return True

    def digest(self) -> str:
        return hashlib.sha256(self._content).hexdigest()

    def detached(self) -> tuple[bytes, dict[int, Span]]:
        return detach_tensors(memoryview(self._content))

    def read(self, span: Span) -> Any:
        return np.frombuffer(self._content, np.uint8, span.end - span.begin, span.begin)

    def content(self) -> bytes:
        return self._content


class ModelFile:
    """An open file. It may be renamed or deleted; a ModelError says so where it was written to since.

    `is_linked`: a model refers to it by a link, which may lead elsewhere the next time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self.folder: Path | None = self._path.parent
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO would block
        self._file = os.open(self._path, flags)
        weakref.finalize(self, os.close, self._file)
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            raise ModelError(f"{path}: expected a file")
        self._state, self._changed = self._now(), os.fstat(self._file).st_ctime_ns
        self.is_linked = False

    def __str__(self) -> str:
        return str(self._path)

    @property
    def path(self) -> Path:
        return self._path

    def is_untouched(self) -> bool:
        """Whether nothing of the file has changed, its times included, since it was opened."""
        return os.fstat(self._file).st_ctime_ns == self._changed

    def relative_to(self, folder: Path) -> str:
        """The path from a folder in which the file lies."""
        return str(self._path.relative_to(folder))

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns

    @property
    def size(self) -> int:
        return self._state[0]

    def digest(self) -> str:
        """The SHA-256 of the file. Raises ModelError where it was written to since it was opened."""
        digest, piece, done = hashlib.sha256(), memoryview(bytearray(min(self.size, PIECE_BYTES))), 0
        while count := os.preadv(self._file, [piece], done):
            digest.update(piece[:count])
            done += count
        self._check_unchanged(is_whole=done == self.size)
        return digest.hexdigest()

    def _check_unchanged(self, *, is_whole: bool = True) -> None:
        if not is_whole or self._now() != self._state:
            raise ModelError(f"{self}: the file was written to since the model was loaded: load it again")

    def detached(self) -> tuple[bytes, dict[int, Span]]:
        self._check_unchanged()
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
        self._check_unchanged(is_whole=begin == data.size)
        return data

    def content(self) -> bytes:
        return bytes(self.read(Span(0, self._state[0])))


def source_of(model: Any) -> ModelSource | None:
    """The source of a model by its path or its bytes; None for anything else. Raises ModelError for a wrong path."""
    if isinstance(model, bytes | bytearray | memoryview):
        return ModelBytes(bytes(model))
    if not isinstance(model, str | os.PathLike):
        return None
    path = Path(model)
    if "\0" in str(path):
        raise ModelError(f"{shown(model)}: expected a path without null bytes")
    if path.is_dir():
        raise ModelError(f"{path}: expected a file, got a folder")
    return ModelFile(path) if path.is_file() else ModelBytes(path.read_bytes(), str(path), path.parent)


def reduced(load: Callable[[Any], Any], source: ModelSource | None, *, has_external_data: bool) -> tuple[Any, ...]:
    """What pickles a model: a call of `load`, with its bytes, or with its path where others of its files are needed."""
    if source is None:
        raise ModelError("a model of more than 2 GB that was loaded from a ModelProto cannot be pickled")
    return load, (str(source) if has_external_data else source.content(),)
