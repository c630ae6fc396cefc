"""The command line: show the machine, explain kernel selection, tune, benchmark, and run a demo.

Expected errors (the package's own, files, disks) print one line on stderr and exit with code 2, without a
traceback.
"""

import contextlib
import io
import os
import sys
from collections.abc import Sequence

from jitkernels.errors import JitKernelsError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 success, 1 the command found a problem, 2 the command failed."""
    from cyclopts import CycloptsError

    from jitkernels.tools.cli.app import app

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
        _fail("interrupted; the measurements so far are stored", 130)
    except BrokenPipeError:
        # The reader closed the pipe: write nothing more, and skip the flush at exit.
        _discard_output()
        code = 0
    except OSError as error:
        _discard_output()
        _fail(str(error))
    sys.exit(code or 0)


def _discard_output() -> None:
    with contextlib.suppress(OSError):  # a stream without a file descriptor needs no flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int = 2) -> None:
    print(f"jitkernels: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
