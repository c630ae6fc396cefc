"""Where and when figures were measured: without it a figure says nothing."""

import datetime as dt
import os
import platform
from typing import Any

from jitkernels import machine


def stamp(threads: int) -> dict[str, Any]:
    """CPU, features, versions, threads, date and load, ready for JSON."""
    return {
        **machine.environment_of_timings(threads),
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "cores": str(machine.cpu_count()),
        "load": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
        "kernel": f"{platform.system()} {platform.release()}",
    }


def in_words(found: dict[str, Any]) -> str:
    """The line that stands above a table."""
    return (
        f"{found['cpu']}, {found['threads']} of {found['cores']} cores, load {found['load']}, {found['python']}, "
        f"numpy {found['numpy']}, {found['date']}"
    )
