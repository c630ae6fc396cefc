"""What is raised for what no graph says."""


class UnknownError(BaseException):
    """No graph says this: NumPy has to compute it. No `Exception`, as functions of users may catch these.

    `line`: that of the function which it is about, where that is not the one from which it is raised. `is_placed`:
    whether the text tells the line.
    """

    def __init__(self, text: str, line: int = 0, *, is_placed: bool = False) -> None:
        super().__init__(text)
        self.line, self.is_placed = line, is_placed


class AskedError(UnknownError):
    """Python asks for a value that is known only when the compiled code runs."""
