"""Records of the tuner as lines of a table."""

from collections.abc import Iterable

from rich.table import Table

from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import known_record
from jitkernels.cli import output
from jitkernels.tuning.store import Record


def complete_record(attr: KernelAttr) -> Record | None:
    """The stored record of an attr if every candidate had its turn."""
    record = known_record(attr)
    return record if record and record.complete else None


def table(records: Iterable[tuple[KernelAttr, Record]]) -> Table:
    """Kernel, attr, pick, the time of each implementation, and how much faster than NumPy the pick is."""
    made = output.table("kernel", "attr", "pick", "times", "x NumPy", right=("x NumPy",))
    for attr, record in records:
        times = " | ".join(
            f"{name} {output.duration(seconds)}" for name, seconds in best_times(record).items()
        )
        speed = speed_over_reference(record)
        made.add_row(
            attr.kernel_type.name,
            attr.text(),
            record.pick.label,
            times,
            "" if speed is None else f"{speed:.2f}",
            style=None,
        )
    return made


def best_times(record: Record) -> dict[str, float]:
    """The best seconds of each implementation, its variants taken together, in the order of the record."""
    best: dict[str, float] = {}
    for candidate in record.candidates:
        if candidate.seconds is not None:
            name = candidate.implementation
            best[name] = min(candidate.seconds, best.get(name, candidate.seconds))
    return best


def speed_over_reference(record: Record) -> float | None:
    """How many times faster the pick is than the NumPy reference, if both have a time."""
    reference = best_times(record).get("refer")
    return reference / record.pick.seconds if reference and record.pick.seconds else None
