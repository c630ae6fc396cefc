"""Resident memory of this process, as the system counts it, and its recent peak."""

from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PROMPT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0"}
"""Environment variables that make the C library return freed memory at once, so that resident pages are live memory."""


def is_available() -> bool:
    """Return whether the system reports the recent peak."""
    try:
        RESET.write_text("5")
    except OSError:
        return False
    return STATUS.exists()


def now() -> int:
    """Return the resident bytes, and restart the measurement of the peak."""
    RESET.write_text("5")
    return _bytes("VmRSS")


def most() -> int:
    """Return the peak of resident bytes since the last call of `now`."""
    return _bytes("VmHWM")


def _bytes(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])
