"""Format seconds and bytes for readers."""


def duration(seconds: float) -> str:
    """Format seconds with three digits and a unit, as in "1.23 us"."""
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def size(count: float) -> str:
    """Format bytes with a unit, as in "1.5 MB"."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count:.0f} bytes"
