"""``jitkernels docs``: print, write or check the reference of all kernels."""

from pathlib import Path

from jitkernels.docs import page
from jitkernels.errors import ArgumentError


def run(*, check: Path | None, write: Path | None) -> int:
    """Print the page, write it to a file, or tell whether a file is up to date."""
    text = page()
    if write is not None:
        write.write_text(text, encoding="utf-8")
        return 0
    if check is None:
        print(text, end="")
        return 0
    try:
        fresh = check.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{check}: {error}") from None
    print(f"{check} is up to date" if fresh else f"{check} is stale: run `jitkernels docs --write {check}`")
    return 0 if fresh else 1
