"""Calls that are left to the plain function: why is said once, or raised where nothing but code will do."""

from typing import Any, Self

from jitkernels.disk import say_once
from jitkernels.errors import TracingError


class Left:
    """Around such a call of a compiled function. `has_raised`: tracing has, as the plain function may itself."""

    def __init__(self, function: Any, reason: str, *, has_raised: bool) -> None:
        self.function, self.reason, self.has_raised = function, reason, has_raised

    def __enter__(self) -> Self:
        if not self.has_raised:
            self._tell()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.has_raised and kind is None:
            self._tell()

    def _tell(self) -> None:
        """Say why. Raises TracingError if code was asked for."""
        function = self.function
        code = getattr(function.__wrapped__, "__code__", None)
        where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        text = f"{function.__name__}{where} is left to NumPy: {self.reason}"
        if function.config.strict:
            raise TracingError(text)
        say_once(f"left {function.__name__}{where}", text)
