"""Hashes of module sources: determined by content, whatever is cached for files with other timestamps."""

import json
import os
import time
from pathlib import Path

import pytest
from processes import python

from jitkernels.codegen import kernel_archive
from jitkernels.core import cache_dirs, source_hash


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of some modules in a folder of its own, with an empty cache."""
    place, cache = tmp_path / "package", tmp_path / "cache"
    (place / "inner" / "deeper").mkdir(parents=True)
    cache.mkdir(mode=0o700)
    for name in ("one.py", "inner/two.py", "inner/deeper/three.py", "inner/text.txt"):
        (place / name).write_text(f"of {name}")
        aged(place / name, len(name))
    monkeypatch.setattr(source_hash, "PACKAGE", place)
    monkeypatch.setattr(cache_dirs, "cache_root", lambda: cache)
    monkeypatch.setattr(source_hash, "_noted", {})
    monkeypatch.setattr(source_hash, "_used", {})
    return place


def aged(file: Path, more: int = 0) -> None:
    """Let a file be as one that was installed a while ago."""
    now = time.time_ns() - 10 * source_hash.RECENT_NANOSECONDS + more
    os.utime(file, ns=(now, now))


def state() -> str:
    """As another process sees it."""
    source_hash.state_of.cache_clear()
    source_hash._noted.clear()
    return source_hash.state_of("one.py", "inner")


def test_an_edit_changes_the_hash(package: Path) -> None:
    """Of any size, also of a file in a nested folder; files that are no modules do not count."""
    before = state()
    assert state() == before
    (package / "inner" / "text.txt").write_text("changed")
    assert state() == before
    for name in ("one.py", "inner/two.py", "inner/deeper/three.py"):
        file = package / name
        text = file.read_text()
        file.write_text(text.upper())
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        assert state() != before, name
        file.write_text(text)
        assert state() == before, name


def test_equal_timestamps_of_a_package_are_ignored(package: Path) -> None:
    """All files of such a package have one time."""
    for file in package.rglob("*.py"):
        os.utime(file, (0, 0))
    before = state()
    (package / "one.py").write_text("OF one.py")
    os.utime(package / "one.py", (0, 0))
    assert state() != before
    assert not (cache_dirs.cache_root() or package).joinpath(source_hash.FILE).exists()


def test_equal_timestamps_of_all_files_are_ignored(package: Path) -> None:
    """Reproducible images and packages give every file the time of a commit."""
    for content in ("one", "two"):
        (package / "one.py").write_text(content)
        for file in package.rglob("*.py"):
            os.utime(file, (1.7e9, 1.7e9))
        found = state()
        assert found == source_hash._hash(source_hash._modules_of("one.py", "inner"))
    assert source_hash.noted() == {}


def test_recently_changed_files_are_not_cached(package: Path) -> None:
    """They may change again, keeping size and time where the file system counts in seconds."""
    file = package / "one.py"
    for content in ("one", "two"):
        file.write_text(content)
        now = time.time_ns() // 10**9 * 10**9
        os.utime(file, ns=(now, now))
        assert state() == source_hash._hash(source_hash._modules_of("one.py", "inner"))
    assert source_hash.noted() == {}
    aged(file)
    found = state()
    assert found in source_hash.noted().values()


def test_cached_hashes_save_reading(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()
    monkeypatch.setattr(source_hash, "_hash", lambda files: pytest.fail("it is noted in the cache"))
    assert state() == before
    notes = source_hash.noted()
    source_hash.state_of.cache_clear()
    monkeypatch.setattr(cache_dirs, "cache_root", lambda: None)
    source_hash.note(notes)
    assert source_hash.state_of("one.py", "inner") == before


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"a": {}}', b"[" * 100_000])
def test_invalid_cache_entries(package: Path, content: bytes) -> None:
    """Whatever the file holds, states are computed and stored again."""
    before = state()
    place = (cache_dirs.cache_root() or package) / source_hash.FILE
    place.write_bytes(content)
    assert state() == before
    assert before in json.loads(place.read_bytes()).values()


def test_cache_entries_are_few(package: Path) -> None:
    for number in range(source_hash.MAX_STORED_ENTRIES + 5):
        (package / "one.py").write_text("x" * number)
        aged(package / "one.py", number)
        last = state()
    notes = json.loads(((cache_dirs.cache_root() or package) / source_hash.FILE).read_bytes())
    assert len(notes) == source_hash.MAX_STORED_ENTRIES
    assert last in notes.values()


def test_both_hash_implementations_agree() -> None:
    """OpenSSL's, where it is loaded already, and Python's own."""
    code = "import {}; from jitkernels.core.hashing import sha256; print(sha256(b'some').hexdigest())"
    assert python(code.format("hashlib")) == python(code.format("sys"))
    assert kernel_archive.compiler_version() == source_hash.state_of(*kernel_archive.COMPILER)
