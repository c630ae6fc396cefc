"""Plug-ins: packages with an entry point in the group ``jitkernels.kernels``.

The entry-point files are scanned directly, because `importlib.metadata` takes 15 ms to import and longer to read every
package: it is imported only if one of those files names the group.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
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


def state() -> list[list[str]]:
    """What decides which plug-ins there are: folders of metadata, which name versions, with their entry-point files."""
    found = []
    for path in sys.path:
        with suppress(NotADirectoryError):  # an archive, which is not ours to open
            files = [one for one in _entry_point_files(path) if ENTRY_POINT_GROUP.encode() in one[1]]
            found += [[os.path.basename(folder), content.decode(errors="replace")] for folder, content in files]
    return sorted(found)


def _may_name_the_group(path: str) -> bool:
    """Whether a directory of `sys.path` may hold a plug-in, judged by its entry-point files."""
    try:
        return any(ENTRY_POINT_GROUP.encode() in content for _, content in _entry_point_files(path))
    except NotADirectoryError:
        return True  # packages in an archive are not ours to open


def _entry_point_files(path: str) -> Iterator[tuple[str, bytes]]:
    """The folders of metadata in a directory, and their entry-point files. Raises NotADirectoryError for a file."""
    try:
        with os.scandir(path or ".") as entries:
            folders = [entry.path for entry in entries if entry.name.endswith(FOLDERS)]
    except NotADirectoryError:
        raise
    except OSError:
        return
    for folder in folders:
        with suppress(OSError), open(os.path.join(folder, "entry_points.txt"), "rb") as file:
            yield folder, file.read()
