"""What is raised for what no graph says, and whether a function of users swallowed it."""

from _thread import _local
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Raised(_local):
    """What a thread has raised in the function that it traces, if it does."""

    errors: list[BaseException] | None = None


_raised = _Raised()


def note_raised(error: BaseException) -> None:
    """Remember an exception that must not be caught by the function which is traced."""
    if _raised.errors is not None:
        _raised.errors.append(error)


@contextmanager
def unswallowed(is_ours: Callable[[str], bool]) -> Iterator[None]:
    """Raise UnknownError at the end if any other code than ours caught one of them, and went on.

    Where an exception was caught its traceback begins. So nothing that a function may do to catch it is left out:
    handlers, ``finally`` that returns, context managers.
    """
    before, _raised.errors = _raised.errors, []
    try:
        yield
        for error in _raised.errors:
            place = error.__traceback__
            if place is not None and not is_ours(place.tb_frame.f_code.co_filename):
                raise UnknownError(f"the function catches what is not of its own: {error}", is_placed=True)
    finally:
        _raised.errors = before


class UnknownError(BaseException):
    """No graph says this: NumPy has to compute it. No `Exception`, as functions of users may catch these.

    `line`: that of the function which it is about, where that is not the one from which it is raised. `is_placed`:
    whether the text tells the line.
    """

    def __init__(self, text: str, line: int = 0, *, is_placed: bool = False) -> None:
        super().__init__(text)
        self.line, self.is_placed = line, is_placed
        note_raised(self)


class AskedError(UnknownError):
    """Python asks for a value that is known only when the compiled code runs."""
