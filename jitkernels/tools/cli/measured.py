"""Records of the tuner as rows of a table."""

from collections.abc import Iterable

from rich.table import Table

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.selection.records import Record
from jitkernels.selection.select import known_record
from jitkernels.tools.cli import output


def complete_record(attr: KernelAttr) -> Record | None:
    """Return the stored record of an attr if every candidate was measured, else None."""
    record = known_record(attr)
    return record if record and record.complete else None


def table(records: Iterable[tuple[KernelAttr, Record]]) -> Table:
    """Return a table: kernel, attr, selection, time of each implementation, speedup of the selection over NumPy."""
    result = output.table("kernel", "attr", "pick", "times", "x NumPy", right=("x NumPy",))
    for attr, record in records:
        times = " | ".join(f"{name} {output.duration(seconds)}" for name, seconds in best_times(record).items())
        speed = speed_over_reference(record)
        result.add_row(
            attr.kernel_type.name,
            attr.text(),
            record.pick.label,
            times,
            "" if speed is None else f"{speed:.2f}",
            style=None,
        )
    return result


def best_times(record: Record) -> dict[str, float]:
    """Return the best seconds of each implementation over its variants, in the order of the record."""
    best: dict[str, float] = {}
    for candidate in record.candidates:
        if candidate.seconds is not None:
            name = candidate.implementation
            best[name] = min(candidate.seconds, best.get(name, candidate.seconds))
    return best


def speed_over_reference(record: Record) -> float | None:
    """Return the speedup of the selection over the NumPy reference, or None if either has no time."""
    reference = best_times(record).get("refer")
    return reference / record.pick.seconds if reference and record.pick.seconds else None
