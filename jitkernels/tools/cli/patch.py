"""``jitkernels patch``: the functions that `jitkernels.patch()` serves, and how fast."""

import importlib
from collections.abc import Sequence

from rich.table import Table

from jitkernels.benchmarks.units import duration
from jitkernels.errors import UnknownNameError
from jitkernels.patching.piece import Piece, pieces
from jitkernels.patching.speed import ORIGINAL, PATCHED, measure_patched
from jitkernels.tools.cli import output


def run(names: Sequence[str], *, seconds: float) -> int:
    """Print the pieces that names select; with `seconds` above 0, the times of their calls, and of the originals'.

    Raises UnknownNameError for a name that selects nothing.
    """
    chosen = [one for one in pieces() if not names or any(map(one.is_of, names))]
    if not chosen:
        raise UnknownNameError(f"nothing of {', '.join(names)} can be patched")
    if seconds <= 0:
        table = output.table("function", "served")
        for one in chosen:
            table.add_row(one.target, one.serves)
    else:
        table = output.table("function", "call", ORIGINAL, PATCHED, "speed")
        for one in chosen:
            _add_times(table, one, seconds)
    output.show(table)
    return 0


def _add_times(table: Table, one: Piece, seconds: float) -> None:
    try:
        importlib.import_module(one.module)
    except ImportError as error:
        table.add_row(one.target, f"not installed: {error.name}", "", "", "")
        return
    for call in one.calls():
        times = measure_patched(call.bound(), (one.target,), seconds=seconds)
        before, now = times[ORIGINAL].seconds, times[PATCHED].seconds
        table.add_row(one.target, call.case, duration(before), duration(now), f"{before / now:.2f}")
