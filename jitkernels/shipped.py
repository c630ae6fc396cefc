"""Measurements that come with the package, by CPU family, for machines that have made none of their own.

A table is a JSON file ``tuning/shipped/<name of the CPU>.json``: under "picks", by the text of a tuning class,
its candidates as in a record, best first, with their variants.
"""

import functools
import json
from pathlib import Path
from typing import Any

from jitkernels import machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.tuning.classes import class_of
from jitkernels.tuning.store import Measured

FOLDER = Path(__file__).parent / "tuning" / "shipped"


@functools.cache
def _table() -> dict[str, list[dict[str, Any]]]:
    """Candidates by class for this CPU; empty where no table is shipped."""
    path = FOLDER / f"{machine.cpu_name()}.json"
    if not path.exists():
        return {}
    table: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())["picks"]
    return table


def order(attr: KernelAttr) -> list[Measured]:
    """The candidates of an attr's tuning class from best to worst on this family of CPUs, empty if unknown."""
    table = _table()
    if not table:
        return []
    found = table.get(f"{attr.name}({class_of(attr).text()})", [])
    return [Measured(**candidate) for candidate in found]
