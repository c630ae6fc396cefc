"""The manifest of a bundle: its arrays by name, dtype and shape, its memory, and the processor that it targets."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jitkernels.core.atomic_files import warn_once
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.errors import BundleError, shown

MANIFEST_FORMAT, LAST_FORMAT = 3, 2
"""The format that is written, and that of the previous version, whose manifests have no checksum."""
CHECKED = (".o", ".weights")
"""Suffixes of the files whose checksums are verified before use."""
DESCRIPTION = ".json"
"""Suffix of the manifest, whose checksum covers everything else in it."""


@dataclass(frozen=True)
class Tensor:
    """An array in C order. `offset`: its start in the weights file, if it is a weight."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Description:
    """A bundle. `name`: the prefix of its files and of its C names. `written`: the inputs that it changes.

    `checksums`: of the files of code and of weights, by their suffixes.
    """

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    weights: tuple[Tensor, ...]
    written: tuple[str, ...]
    arena_bytes: int
    target: str
    features: tuple[str, ...]
    checksums: Mapping[str, str]

    @property
    def weights_bytes(self) -> int:
        return max((tensor.offset + tensor.nbytes for tensor in self.weights), default=0)

    @property
    def text(self) -> str:
        """As JSON, with a checksum of the content."""
        content = {"format": MANIFEST_FORMAT, **asdict(self)}
        content["checksums"] = {**self.checksums, DESCRIPTION: _checksum_of(content)}
        return json.dumps(content, indent=2) + "\n"


def described(text: str) -> Description:
    """A description from JSON. Raises BundleError for text that is none, or that was changed since the export."""
    try:
        content: Mapping[str, Any] = json.loads(text)
        if content["format"] == LAST_FORMAT:
            name = shown(content["name"])
            warn_once(f"bundle {name}", f"bundle {name} has the previous format: its description has no checksum")
        elif content["format"] != MANIFEST_FORMAT:
            raise BundleError(f"bundle format: expected {MANIFEST_FORMAT}, got {shown(content['format'])}")
        elif (now := _checksum_of(content)) != content["checksums"][DESCRIPTION]:
            raise BundleError(
                "the description was changed after the export: expected SHA-256 "
                f"{shown(content['checksums'][DESCRIPTION])} of its content, got {now}"
            )
        arrays = {name: tuple(map(_tensor, content[name])) for name in ("inputs", "outputs", "weights")}
        return Description(
            name=str(content["name"]),
            **arrays,
            written=tuple(content["written"]),
            arena_bytes=int(content["arena_bytes"]),
            target=str(content["target"]),
            features=tuple(content["features"]),
            checksums={end: str(content["checksums"][end]) for end in CHECKED},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"this describes no bundle: {type(error).__name__}: {error}") from error


def _tensor(content: Mapping[str, Any]) -> Tensor:
    return Tensor(
        str(content["name"]), str(np.dtype(content["dtype"])), tuple(map(int, content["shape"])), int(content["offset"])
    )


def _checksum_of(content: Mapping[str, Any]) -> str:
    """The checksum of the content of a description, independent of JSON formatting."""
    files = {end: checksum_of_file for end, checksum_of_file in content["checksums"].items() if end != DESCRIPTION}
    return checksum(json.dumps({**content, "checksums": files}, sort_keys=True).encode())


def checksum(content: bytes) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(content).hexdigest()


def in_c(names: Iterable[str]) -> list[str]:
    """Distinct C identifiers for Python names."""
    identifiers: list[str] = []
    for name in names:
        base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "array"
        base = f"_{base}" if base[0].isdigit() else base
        identifier, count = base, 1
        while identifier in identifiers:
            count += 1
            identifier = f"{base}_{count}"
        identifiers.append(identifier)
    return identifiers


def laid_out(arrays: Sequence[tuple[str, "np.ndarray[Any, Any]"]]) -> tuple[tuple[Tensor, ...], bytes]:
    """The weights file: each array starts at a cache line; the tensors with their offsets, and the bytes."""
    tensors: list[Tensor] = []
    content = bytearray()
    for name, array in arrays:
        content += bytes(-len(content) % CACHE_LINE_BYTES)
        tensors.append(Tensor(name, array.dtype.name, array.shape, len(content)))
        content += array.tobytes()
    return tuple(tensors), bytes(content)
