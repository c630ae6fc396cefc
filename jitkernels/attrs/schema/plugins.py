"""Plug-ins: packages with an entry point in the group ``jitkernels.kernels``.

The entry-point files are scanned directly, because `importlib.metadata` takes 15 ms to import and longer to read every
package: it is imported only if one of those files names the group.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jitkernels.core.atomic_files import warn_once

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINT_GROUP = "jitkernels.kernels"
FOLDERS = (".dist-info", ".egg-info")


def installed() -> "Sequence[EntryPoint]":
    """The entry points of plug-ins; none, and a warning, where the installed packages cannot be read."""
    if not any(map(_may_name_the_group, sys.path)):
        return ()
    from importlib.metadata import entry_points

    try:
        return sorted(entry_points(group=ENTRY_POINT_GROUP))
    except Exception as error:  # noqa: BLE001  # files of other packages may be damaged in any way
        warn_once(ENTRY_POINT_GROUP, f"cannot look for kernels of other packages: {type(error).__name__}: {error}")
        return ()


def _may_name_the_group(folder: str) -> bool:
    """Whether a directory of `sys.path` may hold a plug-in, judged by its entry-point files."""
    try:
        with os.scandir(folder or ".") as entries:
            metadata_folders = [entry.path for entry in entries if entry.name.endswith(FOLDERS)]
    except NotADirectoryError:
        return True  # packages in an archive are not ours to open
    except OSError:
        return False
    return any(ENTRY_POINT_GROUP.encode() in content for content in _entry_point_files(metadata_folders))


def _entry_point_files(folders: Sequence[str]) -> Iterator[bytes]:
    for folder in folders:
        try:
            yield Path(folder, "entry_points.txt").read_bytes()
        except OSError:
            continue
