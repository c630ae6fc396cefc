"""A helper process that compiles, and exits when it is idle (``JITKERNELS_COMPILER=process``).

LLVM adds some 95 MB to a process, and never frees them. The helper receives jobs through a pipe, as JSON, and answers
with object files or error texts. It exits after `IDLE_SECONDS` without a job, or when the pipe is closed. It has its
own session, so that Ctrl-C reaches the parent alone. A forked child starts a helper of its own.

If LLVM crashes the helper, the job raises an error: this process would crash as well. If the helper cannot be
started, or is killed twice, this process compiles itself, with one warning.
"""

import fcntl
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import IO

from jitkernels.codegen.compile_job import CompileJob, from_json, to_json
from jitkernels.codegen.dump import dumps_intermediates
from jitkernels.core import settings
from jitkernels.core.atomic_files import warn_once
from jitkernels.errors import BuildError

IDLE_SECONDS = 2.0
LENGTH = struct.Struct("<q")
PIPE_BYTES = 1 << 20
"""The most that Linux lets a pipe hold; jobs have up to 800 kB."""
OBJECT, ERROR = b"o", b"e"
"""The first byte of an answer."""
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGILL, signal.SIGBUS, signal.SIGFPE)
"""Signals by which LLVM aborts a process."""
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START = """import json, sys, types
package, sys.path[:] = json.loads(sys.argv[1])
sys.modules["jitkernels"] = made = types.ModuleType("jitkernels")
made.__path__ = [package]
from jitkernels.codegen.compiler_process import serve
serve()
"""
"""The helper's program. It imports the compiler only, not the whole package."""


class HelperLostError(Exception):
    """The helper process has exited; `status` is its exit status."""

    def __init__(self, status: int | None) -> None:
        super().__init__(f"exit status {status}")
        self.status = status


class Helper:
    """The parent's side of one helper process."""

    def __init__(self) -> None:
        """Start the process. Raises OSError if the system refuses."""
        paths = json.dumps([PACKAGE, [path for path in sys.path if isinstance(path, str)]])  # as Python's import does
        self._process = subprocess.Popen(
            [sys.executable or "python3", "-I", "-c", START, paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # a forked child would flush the buffer again
            start_new_session=True,
        )
        _enlarge(self._process.stdin)

    def ask(self, job: CompileJob) -> bytes:
        """Send a job and return the answer. Raises HelperLostError."""
        self.send(job)
        return self.receive()

    def send(self, job: CompileJob) -> None:
        """Send a job. Raises HelperLostError."""
        assert self._process.stdin is not None, "a pipe"
        if self._process.poll() is not None:  # where SIGPIPE is not ignored, writing to it would end this process
            self.end()
            raise HelperLostError(self._process.returncode)
        with self._lost():
            _write(self._process.stdin, _message(job))

    @property
    def has_answered(self) -> bool:
        """Whether `receive` would not wait for long: an answer has begun to arrive, or the helper is lost."""
        assert self._process.stdout is not None, "a pipe"
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def receive(self) -> bytes:
        """Wait for the answer to a job, and return it. Raises HelperLostError."""
        assert self._process.stdout is not None, "a pipe"
        with self._lost():
            return _read(self._process.stdout)

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """Raise HelperLostError where the helper has exited."""
        try:
            yield
        except (OSError, EOFError):
            self.end()
            raise HelperLostError(self._process.returncode) from None
        except BaseException:  # such as KeyboardInterrupt: a pending answer must not be read as the next one
            self.kill()
            raise

    def kill(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self.end()

    def end(self) -> None:
        """Close the pipes, which ends the process, and wait for it."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None, "a pipe"
                pipe.close()
        self._process.wait()


class Client:
    """The helper of the current process, for one thread at a time; a signal handler that compiles has its own."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._lock = threading.Lock()
        self._owner = 0
        self._helper: Helper | None = None

    def ask(self, job: CompileJob) -> bytes:
        """Return the helper's answer; start a helper if there is none. Raises HelperLostError and OSError."""
        if self._owner == threading.get_ident():
            helper = Helper()
            try:
                return helper.ask(job)
            finally:
                helper.end()
        with self._lock:
            self._owner = threading.get_ident()
            try:
                return self._ask_current_or_new(job)
            finally:
                self._owner = 0

    def _ask_current_or_new(self, job: CompileJob) -> bytes:
        helper, self._helper = self._helper, None
        if helper is not None:
            try:
                return self._kept(helper, job)
            except HelperLostError as lost:
                if lost.status and -lost.status in CRASHES:
                    raise
        try:  # the previous helper exited when idle, or was killed
            return self._kept(Helper(), job)
        except HelperLostError as lost:
            if lost.status and -lost.status in CRASHES:
                raise
        return self._kept(Helper(), job)

    def _kept(self, helper: Helper, job: CompileJob) -> bytes:
        answer = helper.ask(job)
        self._helper = helper
        return answer


_client: Client | None = None


def compiled(job: CompileJob) -> bytes | None:
    """Return the object file of a job; None if this process must compile it. Raises BuildError as LLVM does."""
    global _client
    client = _client
    if client is None or client.process != os.getpid():
        client = _client = Client()
    try:
        answer = client.ask(job)
    except HelperLostError as lost:
        if lost.status and -lost.status in CRASHES:
            raise BuildError(
                f"LLVM crashed the helper process that compiled {job.name}, by signal {-lost.status}"
            ) from None
        reason = str(lost)
    except OSError as error:
        reason = str(error)
    else:
        if answer.startswith(ERROR):
            raise BuildError(answer.removeprefix(ERROR).decode())
        return answer.removeprefix(OBJECT)
    warn_once(
        "compiler process",
        f"the helper process of JITKERNELS_COMPILER=process is lost ({reason}): compiling in this process instead",
    )
    return None


def _enlarge(pipe: IO[bytes] | None) -> None:
    """Let a pipe hold a job, so that who sends it to a helper that is still starting does not wait. Linux can."""
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _write(pipe: IO[bytes], text: bytes) -> None:
    rest = memoryview(LENGTH.pack(len(text)) + text)
    while rest:
        rest = rest[pipe.write(rest) or 0 :]


def _read(pipe: IO[bytes]) -> bytes:
    """Read one message. Raises EOFError at the end of the pipe."""
    (length,) = LENGTH.unpack(_read_exactly(pipe, LENGTH.size))
    return _read_exactly(pipe, length)


def _read_exactly(pipe: IO[bytes], length: int) -> bytes:
    """Read exactly `length` bytes from an unbuffered pipe; `select` does not see buffers."""
    result = bytearray()
    while len(result) < length:
        piece = pipe.read(length - len(result))
        if not piece:
            raise EOFError
        result += piece
    return bytes(result)


def _message(job: CompileJob) -> bytes:
    """A job as a helper reads it: intermediate texts only where they are going to be dumped."""
    sent = job if dumps_intermediates() else replace(job, forms={})
    return json.dumps([_folder(), settings.present(), to_json(sent)]).encode()


def _folder() -> str:
    """The current directory, if it still exists."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def serve() -> None:
    """The helper's main loop: answer jobs until there are none."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # prints must not reach the answer pipe
    jobs = os.fdopen(0, "rb", buffering=0, closefd=False)
    with suppress(ImportError):  # which a job reports
        from jitkernels.codegen import llvm_backend  # noqa: F401  # before there is a job
    while select.select([jobs], [], [], IDLE_SECONDS)[0]:
        try:
            folder, chosen, job = json.loads(_read(jobs))
        except EOFError:
            return
        for name in settings.present():
            del os.environ[name]
        os.environ.update(chosen)
        with suppress(OSError):
            os.chdir(folder)
        answer = _answer(from_json(job))
        try:
            _write(answers, answer)
        except BrokenPipeError:  # the client has ended meanwhile
            return


def _answer(job: CompileJob) -> bytes:
    try:
        from jitkernels.codegen import llvm_backend

        return OBJECT + llvm_backend.object_of(job)
    except BuildError as error:
        return ERROR + str(error).encode()
    except Exception as error:  # noqa: BLE001  # the parent raises it
        return ERROR + f"{job.name} cannot be compiled: {type(error).__name__}: {error}".encode()
