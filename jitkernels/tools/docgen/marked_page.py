"""Pages of which commands write what follows a marker line."""

from jitkernels.errors import ArgumentError


def with_table(text: str, marker: str, table: str) -> str:
    """A page with the present table after its marker line. Raises ArgumentError for a page without the marker."""
    before, found, _ = text.partition(marker)
    if not found:
        raise ArgumentError(f"expected a page with the line {marker.strip()!r}, got one without")
    return f"{before}{marker}\n{table}"
