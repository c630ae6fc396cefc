"""Fallback policy: reports once why calls run the plain function, or raises with `strict`."""

from typing import Any, Self

from jitkernels.core.atomic_files import warn_once
from jitkernels.errors import TracingError


class FallbackReport:
    """Context of a call that falls back. `has_raised`: tracing raised, and the plain function may raise the same.

    `is_quiet`: the function is a part of another one, whose explanation tells, or later calls divide it.
    """

    def __init__(self, function: Any, reason: str, *, has_raised: bool, is_quiet: bool = False) -> None:
        self.function, self.reason, self.has_raised, self.is_quiet = function, reason, has_raised, is_quiet

    def __enter__(self) -> Self:
        if not self.has_raised:
            self._report()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.has_raised and kind is None:
            self._report()

    def _report(self) -> None:
        """Report the reason. Raises TracingError if the config is strict."""
        if self.is_quiet:
            return
        function = self.function
        code = getattr(function.__wrapped__, "__code__", None)
        where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        text = f"{function.__name__}{where} falls back to NumPy: {self.reason}"
        if function.config.strict:
            raise TracingError(text)
        warn_once(f"fallback {function.__name__}{where}", text)
