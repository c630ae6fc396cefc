"""Measurements that come with the package, by CPU family, for machines that have made none of their own."""

import functools
import json
from pathlib import Path

from jitkernels import machine
from jitkernels.attrs.base import KernelAttr

FOLDER = Path(__file__).parent / "tuning" / "shipped"


@functools.cache
def _table() -> dict[str, list[str]]:
    """Picks by attr text for this CPU, best first; empty where none is shipped."""
    path = FOLDER / f"{machine.cpu_name()}.json"
    if not path.exists():
        return {}
    table: dict[str, list[str]] = json.loads(path.read_text())["picks"]
    return table


def order(attr: KernelAttr) -> list[str]:
    """Implementations of an attr's tuning class from best to worst on this family of CPUs, empty if unknown."""
    return _table().get(f"{attr.name}({attr.tuning_class().text()})", [])
