"""Write runs of a benchmark as one self-contained HTML page: sortable tables, and charts.

``jitkernels bench --report DIR`` writes it. matplotlib draws charts as SVG with selectable text, in colours
of the page, which adapt to dark mode; each chart has its numbers in a table below it.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path

from jitkernels.benchmarks.saved import Run
from jitkernels.errors import ArgumentError, NotUsableError
from jitkernels.tuning.peaks import Peaks

PAGE_NAME = "index.html"
LIBRARIES = ("matplotlib", "jinja2")


def check(folder: Path) -> None:
    """Check that a page can be written, before anything is measured.

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
    """Write the page of a run, or of two side by side, the earlier first; return its path.

    `peaks` are the peak rates of the machine of the runs. Raises ArgumentError if the folder is not writable.
    """
    check(folder)
    from jitkernels.benchmarks.report.page import page_of

    text = page_of(runs, peaks)
    path = folder / PAGE_NAME
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"--report: {path}: {error.strerror or error}") from None
    return path
