"""Tables, progress and log lines: colour and bars on a terminal, plain text where it is piped."""

import contextlib
import logging
from collections.abc import Iterator

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from jitkernels.benchmark.units import duration as duration
from jitkernels.benchmark.units import size as size

PIPED_WIDTH = 10_000
"""Columns where there is no terminal to ask: a line of a table stays one line for other programs."""


def console(*, stderr: bool = False) -> Console:
    """A console that writes colour to terminals only, and none at all under ``NO_COLOR``."""
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=PIPED_WIDTH)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table; the columns in `right` are aligned to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left")
    return made


def show(made: Table) -> None:
    """Print a table, without the blanks that fill its last column where it is piped."""
    out = console()
    if out.is_terminal:
        out.print(made)
        return
    with out.capture() as captured:
        out.print(made)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


@contextlib.contextmanager
def progress() -> Iterator[Progress]:
    """A progress bar on stderr, silent unless that is a terminal; log lines go above it."""
    target = console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with (
        logged(target),
        Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar,
    ):
        yield bar


@contextlib.contextmanager
def logged(target: Console) -> Iterator[None]:
    """Show warnings of jitkernels, one line each, while inside."""
    handler = RichHandler(logging.WARNING, target, show_time=False, show_path=False, highlighter=None)
    log = logging.getLogger("jitkernels")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
