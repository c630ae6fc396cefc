"""``jitkernels docs``: print, write or check the reference of all kernels."""

from pathlib import Path

from jitkernels.docs import page
from jitkernels.errors import ArgumentError
from jitkernels.stub import text as type_stub


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def run(*, check: Path | None, write: Path | None, stub: bool) -> int:
    """Print the page or the stub, write it to a file, or tell whether a file is up to date."""
    text = type_stub() if stub else page()
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
    again = f"jitkernels docs {'--stub ' * stub}--write {check}"
    print(f"{check} is up to date" if fresh else f"{check} is stale: run `{again}`")
    return 0 if fresh else 1
