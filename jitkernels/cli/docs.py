"""``jitkernels docs``: print, write or check the reference of all kernels."""

from pathlib import Path

from jitkernels.docs import page
from jitkernels.errors import ArgumentError


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def run(*, check: Path | None, write: Path | None) -> int:
    """Print the page, write it to a file, or tell whether a file is up to date."""
    text = page()
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
    print(f"{check} is up to date" if fresh else f"{check} is stale: run `jitkernels docs --write {check}`")
    return 0 if fresh else 1
