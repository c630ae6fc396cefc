"""What a bundle says of itself: its arrays by name, dtype and shape, its memory, and the processor that it is for."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jitkernels.errors import BundleError, shown

FORMAT = 2
LINE = 64
CHECKED = (".o", ".weights")
"""The ends of the names of files that are compared with their checksums before they are used."""


@dataclass(frozen=True)
class Tensor:
    """An array in C order. `offset`: where it begins in the file of weights, if it is one of these."""

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
    """A bundle. `name`: the prefix of its files and of its names in C. `written`: of inputs, those that are changed.

    `checksums`: of the files of code and of weights, by the ends of their names.
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
        return max((one.offset + one.nbytes for one in self.weights), default=0)

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"


def described(text: str) -> Description:
    """A description out of JSON. Raises BundleError for what is none."""
    try:
        found: Mapping[str, Any] = json.loads(text)
        if found["format"] != FORMAT:
            raise BundleError(f"a bundle of format {shown(found['format'])}: expected {FORMAT}")
        arrays = {name: tuple(map(_tensor, found[name])) for name in ("inputs", "outputs", "weights")}
        return Description(
            name=str(found["name"]),
            **arrays,
            written=tuple(found["written"]),
            arena_bytes=int(found["arena_bytes"]),
            target=str(found["target"]),
            features=tuple(found["features"]),
            checksums={end: str(found["checksums"][end]) for end in CHECKED},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"this describes no bundle: {type(error).__name__}: {error}") from error


def _tensor(found: Mapping[str, Any]) -> Tensor:
    return Tensor(
        str(found["name"]),
        str(np.dtype(found["dtype"])),
        tuple(map(int, found["shape"])),
        int(found["offset"]),
    )


def checksum(content: bytes) -> str:
    """What tells a file from a damaged one."""
    return hashlib.sha256(content).hexdigest()


def in_c(names: Iterable[str]) -> list[str]:
    """Names of C that are like some names of Python, each another one."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "array"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        own, count = plain, 1
        while own in found:
            count += 1
            own = f"{plain}_{count}"
        found.append(own)
    return found


def laid_out(arrays: Sequence[tuple[str, "np.ndarray[Any, Any]"]]) -> tuple[tuple[Tensor, ...], bytes]:
    """Where each of some arrays lies in a file, at the begin of a line, and the file."""
    tensors: list[Tensor] = []
    content = bytearray()
    for name, array in arrays:
        content += bytes(-len(content) % LINE)
        tensors.append(Tensor(name, array.dtype.name, array.shape, len(content)))
        content += array.tobytes()
    return tuple(tensors), bytes(content)
