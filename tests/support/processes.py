"""Fresh interpreters, for tests of process start, forks and kills."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]
FOLDERS = [str(HERE.parent), *sorted({str(path.parent) for path in HERE.rglob("*.py")} - {str(HERE)})]
"""Import path of test processes: the package and the test modules."""


def environment(cache: Path | None = None, **variables: str) -> dict[str, str]:
    """Return the environment of a process that imports this checkout and the test modules."""
    path = os.pathsep.join(FOLDERS)
    chosen = {} if cache is None else {"JITKERNELS_CACHE_DIR": str(cache)}
    return {**os.environ, "PYTHONPATH": path, **chosen, **variables}


def start(code: str, cache: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
    """Start an interpreter that runs code, with its output in pipes.

    It leads a process group, so that its forks can be killed with it and hold no pipe open.
    """
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment(cache, **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """Kill a process and its forks by SIGKILL; return their output."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()


def finish(process: "subprocess.Popen[str]", *, status: int = 0, timeout: float = 120) -> str:
    """Wait for the end, require that exit status, and return the output."""
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        out, errors = kill(process)
        raise AssertionError(f"still running after {timeout} s\n{out}\n{errors}") from None
    except BaseException:
        kill(process)
        raise
    assert process.returncode == status, f"exit status {process.returncode}\n{out}\n{errors}"
    return out + errors if status else out


def python(code: str, cache: Path | None = None, *, status: int = 0, timeout: float = 120, **variables: str) -> str:
    """Run code in a fresh interpreter and return its output."""
    return finish(start(code, cache, **variables), status=status, timeout=timeout)
