"""The command line: what is here, what is fastest and why, and a tour of it all.

Whatever goes wrong on purpose, or because of a file or a disk, is one line on stderr and exit code 2, never a
traceback.
"""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from jitkernels.errors import JitKernelsError

NEEDED = ("cyclopts", "rich")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 done and something is wrong, 2 it could not be done."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        _fail(f"the command line needs {' and '.join(missing)}: install jitkernels[cli]")
    from cyclopts import CycloptsError

    from jitkernels.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files and variables may hold any byte
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(
            sys.argv[1:] if arguments is None else list(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
    except (JitKernelsError, CycloptsError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("interrupted; what was measured so far is kept", 130)
    except BrokenPipeError:
        # The reader of our output has left: no more of it, not even the flush at exit.
        _discard_output()
        code = 0
    except OSError as error:
        _discard_output()
        _fail(str(error))
    sys.exit(code or 0)


def _discard_output() -> None:
    with contextlib.suppress(OSError):  # where there is no file behind it, nothing is flushed either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int = 2) -> None:
    print(f"jitkernels: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
