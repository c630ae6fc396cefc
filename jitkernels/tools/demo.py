"""The main job on real input: which text files are alike, computed by four kernels end to end.

The words of each file are hashed to rows of a random table and pooled (EMB_SEQ_POOL), normalised
(LAYER_NORM), compared all with all (MATMUL) and sharpened (SOFTMAX). Random rows are nearly orthogonal, so
the product of two pooled vectors measures how many rare words two files share.
"""

import re
import sysconfig
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentError
from jitkernels.signature import AnyArray

TABLE_ROWS, TABLE_WIDTH = 16384, 512
LENGTHS = (128, 512)
"""Words per file, padded up to one of these so that few shapes are tuned; of more, the rarest are taken."""
FEWEST_WORDS = 20
"""Modules of the standard library with fewer words are left out: they are alike by accident."""
SHARPNESS = 40.0
NOT_MODULES = {"site-packages", "dist-packages", "test", "tests", "idle_test", "_bundled", "__pycache__"}

_word = re.compile(r"[A-Z]{3,}(?![a-z])|[A-Za-z][a-z]{2,}")
Words = Mapping[str, Sequence[str]]
Call = Callable[..., AnyArray]


def words_of(text: str) -> list[str]:
    """The distinct words of a text in order, identifiers split at underscores and capitals."""
    return sorted({word.lower() for word in set(_word.findall(text))})


def read_files(paths: Iterable[Path]) -> Words:
    """Words by file name. Raises ArgumentError naming the first file that is missing, not text or empty."""
    found: dict[str, Sequence[str]] = {}
    for path in paths:
        try:
            words = words_of(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ArgumentError(
                f"{path}: not a text file (UTF-8 expected, byte {error.start} is not)"
            ) from None
        except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
            raise ArgumentError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        if not words:
            raise ArgumentError(f"{path}: there is no word in it")
        found[str(path)] = words
    if len(found) < 2:
        raise ArgumentError(f"expected at least two different files to compare, got {len(found)}")
    return found


def read_standard_library() -> Words:
    """Words by module name of Python's own standard library on this machine."""
    root = Path(sysconfig.get_path("stdlib"))
    found: dict[str, Sequence[str]] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if NOT_MODULES.intersection(parts):
            continue
        try:
            words = words_of(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, OSError):
            continue
        if len(words) >= FEWEST_WORDS:
            found[".".join(part for part in parts if part != "__init__")] = words
    if len(found) < 2:
        raise ArgumentError(
            f"there are no modules of the standard library below {root}: name some text files"
        )
    return found


@dataclass(frozen=True)
class Documents:
    """Files as the kernels take them: a table of embeddings, and ids in groups of equal length.

    A group is the positions of its files and ids of shape [length, files], filled up with id 0, whose row is
    zero.
    """

    names: tuple[str, ...]
    table: AnyArray
    groups: tuple[tuple[AnyArray, AnyArray], ...]

    def __len__(self) -> int:
        return len(self.names)


def documents(words: Words) -> Documents:
    """Hash words to ids and draw the table: random signs times the weight of the id, more for rare ones."""
    numbers: dict[str, int] = {}
    for found in words.values():
        for word in found:
            if word not in numbers:
                numbers[word] = 1 + zlib.crc32(word.encode()) % (TABLE_ROWS - 1)
    ids = [np.unique([numbers[word] for word in found]) for found in words.values()]
    files_with = np.bincount(np.concatenate(ids), minlength=TABLE_ROWS)
    telling = (files_with >= 2) & (files_with <= max(2, len(ids) // 10))
    kept = []
    for own in ids:
        own = own[telling[own]]
        kept.append(own[np.argsort(files_with[own], kind="stable")][: LENGTHS[-1]])
    weight = np.where(telling, np.log1p(len(ids) / np.maximum(files_with, 1)), 0).astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 256, (TABLE_ROWS, TABLE_WIDTH // 8), np.uint8)
    table = (np.unpackbits(bits, axis=1).astype(np.float32) * 2 - 1) * weight[:, None]
    table[0] = 0
    return Documents(tuple(words), table, tuple(_groups(kept)))


def _groups(kept: Sequence[AnyArray]) -> Iterable[tuple[AnyArray, AnyArray]]:
    shorter = 0
    for length in LENGTHS:
        members = [i for i, own in enumerate(kept) if shorter <= len(own) <= length]
        if members:
            ids = np.zeros((length, len(members)), np.int64)
            for column, member in enumerate(members):
                ids[: len(kept[member]), column] = kept[member]
            yield np.array(members), ids
        shorter = length + 1


def likeness(given: Documents, call: Call) -> AnyArray:
    """How alike any two documents are: row i is a distribution over the others.

    `call(kernel, *arguments, **options)` computes one kernel.
    """
    pooled = np.empty((len(given), TABLE_WIDTH), np.float32)
    for members, ids in given.groups:
        pooled[members] = call("emb_seq_pool", given.table, ids, pool="sum").reshape(-1, TABLE_WIDTH)
    scale = np.full(TABLE_WIDTH, (SHARPNESS / TABLE_WIDTH) ** 0.5, np.float32)
    normalised = call("layer_norm", pooled, scale, np.zeros_like(scale))
    scores = call("matmul", normalised, normalised.T)
    np.fill_diagonal(scores, -np.inf)
    return call("softmax", scores)


def nearest(alike: AnyArray, document: int, count: int = 3) -> list[int]:
    """The documents most alike to one, best first."""
    return [int(i) for i in np.argsort(-alike[document], kind="stable")[:count]]


def examples(names: Sequence[str]) -> list[int]:
    """Documents worth showing: some well-known modules, or else the first few."""
    known = [
        "json.decoder",
        "asyncio.tasks",
        "email.header",
        "tarfile",
        "threading",
        "xml.dom.minidom",
        "random",
    ]
    return [names.index(name) for name in known if name in names] or list(range(min(len(names), 7)))


def agree(fast: AnyArray, reference: AnyArray) -> Any:
    """The largest difference between two results, and how many documents have another nearest one."""
    moved = int(np.count_nonzero(fast.argmax(axis=1) != reference.argmax(axis=1)))
    return float(np.abs(fast - reference).max()), moved
