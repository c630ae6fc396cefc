"""``jitkernels cache``: what is kept between processes, whether it is whole, and how to be rid of it."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from jitkernels import machine, states
from jitkernels.attrs.fused import FusedAttr
from jitkernels.attrs.program import ProgramAttr
from jitkernels.cli import output
from jitkernels.errors import JitKernelsError
from jitkernels.native import cache
from jitkernels.native.threads import get_num_threads
from jitkernels.packing import Packing
from jitkernels.registry import all_rows, row
from jitkernels.tuning import store

BUILT = (".o", ".so")
OF_FUNCTIONS = (FusedAttr.kernel_type.name, ProgramAttr.kernel_type.name)


def show() -> int:
    """Print the folders of each environment with what they hold."""
    found = summary()
    out = output.console()
    if found["place"] is None:
        out.print("no private cache folder can be had: nothing is kept between processes")
        return 0
    out.print(escape(f"{found['place']}: {output.size(found['bytes'])}"))
    table = output.table("environment", "built", "measured", "size", "", right=("built", "measured", "size"))
    for place in _environments():
        built, measured = len(list(_built(place))), len(list((place / "tuning").glob("*.json")))
        used = "in use" if place in _present() else ""
        table.add_row(place.name, str(built), str(measured), output.size(_bytes(place)), used)
    if table.row_count:
        output.show(table)
    return 0


def summary() -> dict[str, Any]:
    """Where the cache is and how much is in it."""
    root = machine.cache_root()
    places = list(_environments())
    return {
        "place": None if root is None else str(root),
        "built": sum(1 for place in places for _ in _built(place)),
        "measured": sum(1 for place in places for _ in (place / "tuning").glob("*.json")),
        "bytes": sum(map(_bytes, places)),
    }


def verify() -> int:
    """Name every file that is damaged; 1 if there are any."""
    checked, damaged = 0, []
    for place in _environments():
        for path in _built(place):
            checked += 1
            if cache.read(path) is None:
                damaged.append((path, "its checksum does not hold"))
        for path in (place / "tuning").glob("*.json"):
            checked += 1
            reason = _wrong_with_record(path)
            if reason:
                damaged.append((path, reason))
    out = output.console()
    for path, reason in damaged:
        out.print(escape(f"{path}: {reason}"), soft_wrap=True)
    out.print(f"{checked} files checked, {len(damaged)} damaged")
    return 1 if damaged else 0


def _wrong_with_record(path: Path) -> str | None:
    try:
        fields = dict(json.loads(path.read_bytes())["attr"])
        kernel = fields.pop("kernel")
        # The rows of a compiled function and its loop nests are not to be had without that function.
        attr = None if kernel in OF_FUNCTIONS else row(kernel)(**fields)
    except (OSError, ValueError, KeyError, TypeError, JitKernelsError) as error:
        return f"it is not a measurement: {error}"
    return None if store.read(path, attr, None) else f"it is not a whole measurement of {attr or kernel}"


def pack(place: Path, names: Sequence[str]) -> int:
    """Write a pack of some kernels, and of what some functions use, or of all kernels."""
    chosen = names or [found.kernel_type.name.lower() for found in all_rows()]
    functions = [name for name in chosen if ":" in name]
    kernels = [row(name).kernel_type.name.lower() for name in chosen if name not in functions]
    with Packing() as packing:
        packing.add_launcher()
        for name in kernels:
            packing.add_row(name)
        for name in functions:
            packing.add_function(name)
    size = packing.write(place)
    out = output.console()
    told = f"{len(packing.objects)} objects and {len(packing.records)} measurements, {output.size(size)}"
    out.print(escape(f"{place}: {told}"), soft_wrap=True)
    return 0


def clear(*, only_others: bool) -> int:
    """Delete the folders of all environments, or of all but the present ones."""
    places = [place for place in _environments() if not (only_others and place in _present())]
    freed = sum(map(_bytes, places))
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    states.forget()
    out = output.console()
    left = [place for place in places if place.exists()]
    out.print(f"{len(places) - len(left)} environments deleted, {output.size(freed)}")
    for place in left:
        out.print(escape(f"{place}: cannot be deleted"), soft_wrap=True)
    return 1 if left else 0


def _environments() -> Iterator[Path]:
    """The folders named after the hash of an environment; nothing else below the root is ours to touch."""
    root = machine.cache_root()
    for place in sorted(root.iterdir()) if root else []:
        if re.fullmatch(r"[0-9a-f]{16}", place.name) and place.is_dir() and not place.is_symlink():
            yield place


def _present() -> set[Path]:
    """The folders of code and of measurements that this process uses."""
    root = machine.cache_root()
    tuning = machine.timings_directory(get_num_threads())
    objects = root and root / machine.digest(machine.environment_of_code())[:16]
    return {place for place in (objects, tuning and tuning.parent) if place}


def _built(place: Path) -> Iterator[Path]:
    return (path for path in (place / "objects").glob("*") if path.suffix in BUILT)


def _bytes(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
