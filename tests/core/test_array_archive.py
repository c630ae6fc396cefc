"""Array archives: what is read equals what was written, and damage is noticed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitkernels.core import array_archive
from jitkernels.core.aligned_memory import MIN_MAPPED_BYTES, is_aligned
from jitkernels.core.array_archive import ArrayArchive, DamagedError

HEADER = {"name": "x", "list": [1, 2]}


def arrays() -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=(3, 5)).astype(np.float32), np.array(3, np.int8), np.zeros((0, 4)), np.array([True, False]),
        np.full(MIN_MAPPED_BYTES // 8 + 1, 7.0), np.arange(3 << 20, dtype=np.uint8),
    ]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    assert array_archive.write(path, HEADER, arrays())
    return path


def test_what_is_read_equals_what_was_written(path: Path) -> None:
    archive = ArrayArchive(path)
    assert archive.header == HEADER
    for array, before in zip(archive.arrays(), arrays(), strict=True):
        np.testing.assert_array_equal(array, before, strict=True)
        assert is_aligned(array) or not array.size


def test_every_kind_of_damage_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    flipped = [len(array_archive.MAGIC) // 2, len(array_archive.MAGIC), 60, 100, len(whole) // 2, len(whole) - 1]
    damaged = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in flipped]
    damaged += [b"", whole[:20], whole[:50], whole[:90], whole[: len(whole) // 2], whole[:-1]]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(DamagedError):
            ArrayArchive(path).arrays()


def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert not array_archive.write(tmp_path / "a", HEADER, arrays())
    assert [*tmp_path.iterdir()] == []
