"""The demo pipeline on real input: find similar text files with four kernels end to end.

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

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.errors import ArgumentError

TABLE_ROWS, TABLE_WIDTH = 16384, 512
LENGTHS = (128, 512)
"""Words per file, padded up to one of these so that few shapes are tuned; of more, the rarest are used."""
FEWEST_WORDS = 20
"""Modules of the standard library with fewer words are skipped: their similarity is accidental."""
SHARPNESS = 40.0
NOT_MODULES = {"site-packages", "dist-packages", "test", "tests", "idle_test", "_bundled", "__pycache__"}

_word = re.compile(r"[A-Z]{3,}(?![a-z])|[A-Za-z][a-z]{2,}")
Words = Mapping[str, Sequence[str]]
Call = Callable[..., AnyArray]


def words_of(text: str) -> list[str]:
    """Return the distinct words of a text in order; identifiers are split at underscores and capitals."""
    return sorted({word.lower() for word in set(_word.findall(text))})


def read_files(paths: Iterable[Path]) -> Words:
    """Return words by file name. Raises ArgumentError naming the first file that is missing, not text or empty."""
    words_by_file: dict[str, Sequence[str]] = {}
    for path in paths:
        try:
            words = words_of(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise ArgumentError(
                f"{path}: expected a text file in UTF-8, got an invalid byte at offset {error.start}"
            ) from None
        except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
            raise ArgumentError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        if not words:
            raise ArgumentError(f"{path}: expected a text file, got one without words")
        words_by_file[str(path)] = words
    if len(words_by_file) < 2:
        raise ArgumentError(f"expected at least two different files to compare, got {len(words_by_file)}")
    return words_by_file


def read_standard_library() -> Words:
    """Return words by module name of Python's standard library on this machine."""
    root = Path(sysconfig.get_path("stdlib"))
    words_by_module: dict[str, Sequence[str]] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if NOT_MODULES.intersection(parts):
            continue
        try:
            words = words_of(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, OSError):
            continue
        if len(words) >= FEWEST_WORDS:
            words_by_module[".".join(part for part in parts if part != "__init__")] = words
    if len(words_by_module) < 2:
        raise ArgumentError(f"expected modules of the standard library below {root}, got none: name some text files")
    return words_by_module


@dataclass(frozen=True)
class Documents:
    """The kernels' inputs: a table of embeddings, and ids in groups of equal length.

    A group is the positions of its files and ids of shape [length, files], padded with id 0, whose row is zero.
    """

    names: tuple[str, ...]
    table: AnyArray
    groups: tuple[tuple[AnyArray, AnyArray], ...]

    def __len__(self) -> int:
        return len(self.names)


def documents(words: Words) -> Documents:
    """Hash words to ids and draw the table: random signs times the weight of the id, larger for rare ones."""
    numbers: dict[str, int] = {}
    for distinct in words.values():
        for word in distinct:
            if word not in numbers:
                numbers[word] = 1 + zlib.crc32(word.encode()) % (TABLE_ROWS - 1)
    ids = [np.unique([numbers[word] for word in distinct]) for distinct in words.values()]
    files_with = np.bincount(np.concatenate(ids), minlength=TABLE_ROWS)
    informative = (files_with >= 2) & (files_with <= max(2, len(ids) // 10))
    rarest = []
    for own in ids:
        own = own[informative[own]]
        rarest.append(own[np.argsort(files_with[own], kind="stable")][: LENGTHS[-1]])
    weight = np.where(informative, np.log1p(len(ids) / np.maximum(files_with, 1)), 0).astype(np.float32)
    bits = np.random.default_rng(0).integers(0, 256, (TABLE_ROWS, TABLE_WIDTH // 8), np.uint8)
    table = (np.unpackbits(bits, axis=1).astype(np.float32) * 2 - 1) * weight[:, None]
    table[0] = 0
    return Documents(tuple(words), table, tuple(_groups(rarest)))


def _groups(rarest: Sequence[AnyArray]) -> Iterable[tuple[AnyArray, AnyArray]]:
    shorter = 0
    for length in LENGTHS:
        members = [i for i, own in enumerate(rarest) if shorter <= len(own) <= length]
        if members:
            ids = np.zeros((length, len(members)), np.int64)
            for column, member in enumerate(members):
                ids[: len(rarest[member]), column] = rarest[member]
            yield np.array(members), ids
        shorter = length + 1


def likeness(documents: Documents, call: Call) -> AnyArray:
    """Return the pairwise similarity of documents: row i is a distribution over the other documents.

    `call(kernel, *arguments, **options)` computes one kernel.
    """
    pooled = np.empty((len(documents), TABLE_WIDTH), np.float32)
    for members, ids in documents.groups:
        pooled[members] = call("emb_seq_pool", documents.table, ids, pool="sum").reshape(-1, TABLE_WIDTH)
    scale = np.full(TABLE_WIDTH, (SHARPNESS / TABLE_WIDTH) ** 0.5, np.float32)
    normalised = call("layer_norm", pooled, scale, np.zeros_like(scale))
    scores = call("matmul", normalised, normalised.T)
    np.fill_diagonal(scores, -np.inf)
    return call("softmax", scores)


def nearest(similarity: AnyArray, document: int, count: int = 3) -> list[int]:
    """Return the `count` documents most similar to `document`, best first."""
    return [int(i) for i in np.argsort(-similarity[document], kind="stable")[:count]]


def examples(names: Sequence[str]) -> list[int]:
    """Return example documents: some well-known modules, or else the first few."""
    known = ["json.decoder", "asyncio.tasks", "email.header", "tarfile", "threading", "xml.dom.minidom", "random"]
    return [names.index(name) for name in known if name in names] or list(range(min(len(names), 7)))


def agree(fast: AnyArray, reference: AnyArray) -> Any:
    """Return the largest difference between two results, and how many documents have a different nearest document."""
    moved = int(np.count_nonzero(fast.argmax(axis=1) != reference.argmax(axis=1)))
    return float(np.abs(fast - reference).max()), moved
