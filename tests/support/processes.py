"""Fresh interpreters, for what depends on how a process starts, forks or dies."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def environment(cache: Path | None = None, **variables: str) -> dict[str, str]:
    """The environment of a process that sees this checkout and the modules of the tests."""
    path = os.pathsep.join([str(HERE.parent), str(HERE)])
    chosen = {} if cache is None else {"JITKERNELS_CACHE_DIR": str(cache)}
    return {**os.environ, "PYTHONPATH": path, **chosen, **variables}


def start(code: str, cache: Path | None = None, **variables: str) -> "subprocess.Popen[str]":
    """An interpreter that runs code; its output can be read from the pipes.

    It leads a process group, so that what it forks can be killed with it and holds no pipe open.
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
    """Kill a process and what it forked, as ``kill -9`` does; what they had printed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()


def finish(process: "subprocess.Popen[str]", *, status: int = 0, timeout: float = 120) -> str:
    """Wait for the end, want that exit status, and give what was printed."""
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


def python(
    code: str, cache: Path | None = None, *, status: int = 0, timeout: float = 120, **variables: str
) -> str:
    """Run code in a fresh interpreter and give what it printed."""
    return finish(start(code, cache, **variables), status=status, timeout=timeout)
