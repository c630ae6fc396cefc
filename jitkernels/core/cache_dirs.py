"""Directories for objects, tuning records and intermediate files, private to the user."""

import contextlib
import functools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from jitkernels.core import settings
from jitkernels.core.environment import environment_of_timings
from jitkernels.core.hashing import digest


@functools.cache
def cache_root() -> Path | None:
    """The root directory of everything that outlives a process, or None when no private directory is available.

    ``JITKERNELS_CACHE_DIR`` if set, else the user's cache directory, else a directory owned by the user below the
    system's temporary directory. A directory that another user owns or may write to is never used: loading machine
    code from it would hand them this process.
    """
    chosen = settings.read("JITKERNELS_CACHE_DIR")
    if chosen:
        return private(Path(chosen).absolute())
    return next((folder for folder in _default_roots() if folder.is_absolute() and private(folder)), None)


def _default_roots() -> Iterator[Path]:
    """Candidate cache directories in order of preference, if no setting names one."""
    import platformdirs

    with contextlib.suppress(RuntimeError):  # a user without a home, as in many containers
        yield Path(platformdirs.user_cache_dir("jitkernels"))
    import tempfile

    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"jitkernels-{user}"


def private(folder: Path) -> Path | None:
    """The directory `folder`, created with mode 0700 if missing, or None if another user owns it or may write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        return None
    return folder


def work_directory() -> Path:
    """The directory of requested intermediate files: ``JITKERNELS_WORKDIR``, else ``./jitkernels-work``."""
    folder = Path(settings.read("JITKERNELS_WORKDIR"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def timings_directory(threads: int) -> Path | None:
    """The directory of tuning records for this environment and thread count, or None without a cache."""
    root = cache_root()
    return root and _timings_below(root, threads)


@functools.cache
def _timings_below(root: Path, threads: int) -> Path:
    """The directory below `root`; cached, as neither machine nor versions change during a process."""
    return root / digest(environment_of_timings(threads))[:16] / "tuning"


def has_timings(name: str, threads: int) -> bool:
    """Whether any attr of a kernel has a tuning record; rechecked when the directory has changed."""
    folder = timings_directory(threads)
    try:
        return folder is not None and _has_timings(folder, name, folder.stat().st_mtime_ns)
    except OSError:
        return False


@functools.lru_cache(maxsize=8)
def _has_timings(folder: Path, name: str, _: int) -> bool:
    return next(folder.glob(f"{name}-*.json"), None) is not None
