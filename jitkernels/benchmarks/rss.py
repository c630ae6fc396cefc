"""Pages of memory that a process has, as the system counts them, and the most that it had of late."""

from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PROMPT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0"}
"""Variables of the environment with which the C library gives back at once what is freed, and keeps nothing for later:
pages are those of what is needed then."""


def is_told() -> bool:
    """Whether the system tells the most of late."""
    try:
        RESET.write_text("5")
    except OSError:
        return False
    return STATUS.exists()


def now() -> int:
    """Bytes of pages; from now on `most` is of the time behind."""
    RESET.write_text("5")
    return _bytes("VmRSS")


def most() -> int:
    """The most bytes since `now` was asked for."""
    return _bytes("VmHWM")


def _bytes(name: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])
