"""Runs of a benchmark as one HTML page that needs nothing beside itself: tables that sort, and charts.

``jitkernels bench --report DIR`` writes it. Charts are drawn by matplotlib as SVG whose text stays text, in colours
of the page, which are others in the dark; each has its numbers in a table below it.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path

from jitkernels.benchmark.peaks import Peaks
from jitkernels.benchmark.saved import Run
from jitkernels.errors import ArgumentError, NotUsableError

NAME = "index.html"
LIBRARIES = ("matplotlib", "jinja2")


def check(folder: Path) -> None:
    """What is said before anything is measured.

    Raises NotUsableError where a library is missing, ArgumentError where no page can be written.
    """
    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise NotUsableError(
                f"--report: pages are written with {library}: pip install 'jitkernels[report]' ({error})"
            ) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"--report: expected a folder, got {folder}: {error.strerror or error}") from None


def write(folder: Path, runs: Sequence[Run], peaks: Peaks | None = None) -> Path:
    """Write the page of a run, or of two side by side, the earlier first; returns its path.

    `peaks` are the limits of the machine that the runs are of. Raises ArgumentError where nothing can be written there.
    """
    check(folder)
    from jitkernels.benchmark.report.page import page_of

    text = page_of(runs, peaks)
    path = folder / NAME
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"--report: {path}: {error.strerror or error}") from None
    return path
