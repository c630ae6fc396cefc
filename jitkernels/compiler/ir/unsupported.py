"""Exceptions for what graphs cannot express, and detection of user code that catches them."""

from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Raised(_local):
    """The exceptions raised in this thread during tracing; None outside of it."""

    errors: list[BaseException] | None = None


_raised = _Raised()


def note_raised(error: BaseException) -> None:
    """Remember an exception that the traced function must not catch."""
    if _raised.errors is not None:
        _raised.errors.append(error)


@contextmanager
def reraise_caught_errors(is_package_file: Callable[[str], bool]) -> Iterator[None]:
    """Raise UnsupportedError at the end if user code caught one of the remembered exceptions and went on.

    The traceback of an exception begins where it was caught. That covers every way of catching: handlers, ``finally``
    with return, context managers.
    """
    before, _raised.errors = _raised.errors, []
    try:
        yield
        for error in _raised.errors:
            traceback = error.__traceback__
            if traceback is not None and not is_package_file(traceback.tb_frame.f_code.co_filename):
                raise UnsupportedError(f"the function catches an exception of the compiler: {error}", is_placed=True)
    finally:
        _raised.errors = before


class UnsupportedError(BaseException):
    """A graph cannot express this: NumPy has to compute it. No `Exception`: functions of users may catch these.

    `line`: the line of the function that it is about, if not the one that raises it. `is_placed`: whether the text
    names the line.
    """

    def __init__(self, text: str, line: int = 0, *, is_placed: bool = False) -> None:
        super().__init__(text)
        self.line, self.is_placed = line, is_placed
        note_raised(self)


class ConcretizationError(UnsupportedError):
    """Python needs a concrete value that is only known when the compiled code runs."""


class UnknownSizeError(UnsupportedError):
    """A size or bound differs from iteration to iteration, or is computed, and nothing tells how."""
