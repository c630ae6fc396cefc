"""The stamp of a run: machine, versions and date, without which figures cannot be compared."""

import datetime as dt
import os
import platform
from typing import Any

from jitkernels.core import cpu_target, environment


def stamp(threads: int) -> dict[str, Any]:
    """Return CPU, features, versions, threads, date and load, ready for JSON."""
    return {
        **environment.environment_of_timings(threads),
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "cores": str(cpu_target.cpu_count()),
        "load": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
        "kernel": f"{platform.system()} {platform.release()}",
    }


def in_words(entries: dict[str, Any]) -> str:
    """Format the stamp as the line above a table."""
    return (
        f"{entries['cpu']}, {entries['threads']} of {entries['cores']} cores, load {entries['load']}, "
        f"{entries['python']}, numpy {entries['numpy']}, {entries['date']}"
    )
