"""Tables, progress and log lines: colour and bars on a terminal, plain text in a pipe."""

import contextlib
import logging
from collections.abc import Iterator

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from jitkernels.benchmarks.units import duration as duration
from jitkernels.benchmarks.units import size as size

PIPED_WIDTH = 10_000
"""Columns without a terminal: table lines are not wrapped, for other programs to parse."""


def console(*, stderr: bool = False) -> Console:
    """Return a console that colours terminal output only, and nothing under ``NO_COLOR``."""
    result = Console(stderr=stderr, highlight=False)
    return result if result.is_terminal else Console(stderr=stderr, highlight=False, width=PIPED_WIDTH)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table; the columns in `right` are aligned to the right."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(column, justify="right" if column in right else "left")
    return result


def show(table: Table) -> None:
    """Print a table; in a pipe, without trailing blanks."""
    out = console()
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """Return a progress bar on stderr, silent unless that is a terminal; log lines go above it."""
    target = console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with logged(target), Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar:
        yield bar


@contextlib.contextmanager
def logged(target: Console) -> Iterator[None]:
    """Print warnings of jitkernels, one line each, inside the ``with`` block."""
    handler = RichHandler(logging.WARNING, target, show_time=False, show_path=False, highlighter=None)
    log = logging.getLogger("jitkernels")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
