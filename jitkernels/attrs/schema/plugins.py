"""Which other packages bring kernels: those with an entry point in the group ``jitkernels.kernels``.

Looked for among the files that installers write, because `importlib.metadata` takes 15 ms to import and longer to
read every package: it is asked only where one of those files names the group.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jitkernels.disk import say_once

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "jitkernels.kernels"
FOLDERS = (".dist-info", ".egg-info")


def installed() -> "Sequence[EntryPoint]":
    """The entry points of other packages; none, and a warning, where what is installed cannot be read."""
    if not any(map(_may_name_the_group, sys.path)):
        return ()
    from importlib.metadata import entry_points

    try:
        return sorted(entry_points(group=GROUP))
    except Exception as error:  # noqa: BLE001  # files of other packages may be damaged in any way
        say_once(GROUP, f"kernels of other packages cannot be looked for: {type(error).__name__}: {error}")
        return ()


def _may_name_the_group(place: str) -> bool:
    """Whether an entry of the path holds a package of ours, as far as a quick look can tell."""
    try:
        with os.scandir(place or ".") as entries:
            found = [entry.path for entry in entries if entry.name.endswith(FOLDERS)]
    except NotADirectoryError:
        return True  # packages in an archive are not ours to open
    except OSError:
        return False
    return any(GROUP.encode() in content for content in _entry_point_files(found))


def _entry_point_files(folders: Sequence[str]) -> Iterator[bytes]:
    for folder in folders:
        try:
            yield Path(folder, "entry_points.txt").read_bytes()
        except OSError:
            continue
