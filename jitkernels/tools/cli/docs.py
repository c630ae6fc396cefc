"""``jitkernels docs``: print, write or check the pages and the type stub that are made from the code."""

from pathlib import Path

from jitkernels.errors import ArgumentError
from jitkernels.tools.docgen import architecture
from jitkernels.tools.docgen.architecture import drawn
from jitkernels.tools.docgen.marked_page import with_table
from jitkernels.tools.docgen.onnx_operators import ONNX_MARKER, listed_operators
from jitkernels.tools.docgen.patched_functions import PATCHING_MARKER, listed_pieces
from jitkernels.tools.docgen.reference import page
from jitkernels.tools.docgen.rules import listed, page_of
from jitkernels.tools.docgen.stubs import text as type_stub
from jitkernels.tools.docgen.torch_operators import TORCH_MARKER, listed_overloads


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _with_rules(path: Path | None) -> str:
    """Return the list of rules; for a page that exists, its text with the present list."""
    if path is None:
        return listed()
    try:
        return page_of(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: {_reason(error)}") from None


def _of_architecture(path: Path | None) -> str:
    """The page on the architecture with its pictures and tables as the code is now."""
    if path is None:
        return drawn()
    try:
        return architecture.page_of(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: {_reason(error)}") from None


def _with_operators(path: Path | None, marker: str, table: str) -> str:
    """A table, of operators say; for a page that exists, its text with the present table."""
    if path is None:
        return table
    try:
        return with_table(path.read_text(encoding="utf-8"), marker, table)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path}: {_reason(error)}") from None


def _text(path: Path | None, kind: str) -> str:
    """What is printed, or belongs in a file; of pages that are written in part, the file has the rest."""
    if kind == "rules":
        return _with_rules(path)
    if kind == "architecture":
        return _of_architecture(path)
    if kind == "onnx":
        return _with_operators(path, ONNX_MARKER, listed_operators())
    if kind == "patching":
        return _with_operators(path, PATCHING_MARKER, listed_pieces())
    if kind == "torch":
        return _with_operators(path, TORCH_MARKER, listed_overloads())
    return type_stub() if kind == "stub" else page()


def run(*, check: Path | None, write: Path | None, kind: str = "") -> int:
    """Print a page, write it to a file, or tell whether a file is up to date.

    `kind`: "stub", "rules", "onnx", "torch", "patching" or "architecture"; the reference of all kernels if empty.
    """
    text = _text(write or check, kind)
    if write is not None:
        try:
            write.write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ArgumentError(f"{write}: {_reason(error)}") from None
        return 0
    if check is None:
        print(text, end="")
        return 0
    try:
        fresh = check.read_text(encoding="utf-8") == text
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{check}: {_reason(error)}") from None
    again = f"jitkernels docs {f'--{kind} ' if kind else ''}--write {check}"
    print(f"{check} is up to date" if fresh else f"{check} is stale: run `{again}`")
    return 0 if fresh else 1
