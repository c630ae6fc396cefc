"""Measurements that come with the package, by CPU family, for machines that have made none of their own."""

import functools
import json
from pathlib import Path

from jitkernels import machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.tuning.store import Measured, Record

FOLDER = Path(__file__).parent / "tuning" / "shipped"


@functools.cache
def _table() -> dict[str, list[str]]:
    """Picks by attr text for this CPU, best first; empty where none is shipped."""
    path = FOLDER / f"{machine.cpu_name()}.json"
    if not path.exists():
        return {}
    table: dict[str, list[str]] = json.loads(path.read_text())["picks"]
    return table


def load(attr: KernelAttr) -> Record | None:
    """The shipped record of an attr's tuning class: an order of implementations, without timings of this machine."""
    names = _table().get(f"{attr.name}({attr.tuning_class().text()})")
    return Record(tuple(Measured(name, seconds=0.0) for name in names)) if names else None
