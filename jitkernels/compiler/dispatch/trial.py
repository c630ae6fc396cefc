"""Trials: calls that compiled code and the plain function serve in turn, until the faster one is known.

Most code takes a small fraction of Python's time, and is linked at once. Code that may take more is not: most of its
calls may be reading long lists of arguments, building results in Python, or NumPy. Each call of a trial runs one of the
two, so that side effects happen once; a size class of arguments that was not seen yet is timed again.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from jitkernels.compiler.dispatch import dispatch_chain
from jitkernels.compiler.dispatch.compiled_link import CompiledLink
from jitkernels.compiler.dispatch.python_call_stats import Timings, size_class
from jitkernels.runtime import vectorcall

SECONDS_OF_LINK = 80e-9
"""What a link to the plain function adds to its time."""

MIN_TIMED_ELEMENTS = 15
"""Arrays of so many elements take the same time in Python."""


class LinkedCall(dispatch_chain.base or object):  # type: ignore[misc]  # made when this is imported
    """Calls one compiled link, which no chain holds yet; `slow` serves what the link refuses."""

    def __init__(
        self, link: CompiledLink, slow: Callable[..., Any], plain: Callable[..., Any], *, takes_out: bool
    ) -> None:
        self.links = dispatch_chain.Links(self, slow, plain, takes_out=takes_out)
        self.links.enter(link)


if dispatch_chain.base is not None:
    vectorcall.prepare(LinkedCall)


class LinkTrial:
    """A compiled link that is compared with the plain function.

    `slow` serves calls that the link refuses, as the plain function does, and takes ``out``. `has_loops`: Python would
    run the loops of slow calls for too long to be timed. `repeats`: some calls later they are timed again, as what
    decides is not the kind of arguments but whether the code bails out.
    """

    def __init__(
        self, link: CompiledLink, slow: Callable[..., Any], plain: Callable[..., Any], *, takes_out: bool,
        has_loops: bool, repeats: bool,
    ) -> None:  # fmt: skip
        self.link, self.plain, self.has_loops, self.repeats = link, plain, has_loops, repeats
        self.compiled: Any = LinkedCall(link, slow, plain, takes_out=takes_out)
        self._timings: dict[int, Timings] = {}
        self._is_warm = False

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], leaves: Sequence[Any]) -> Any:
        """Serve a call by either function, and time it, also where it raises an exception."""
        if not self._is_warm:
            self._is_warm = True
            return self.compiled(*args, **kwargs)
        timings = self._timings.setdefault(size_class(leaves), Timings())
        is_plain = timings.prefers_plain(has_loops=self.has_loops)
        began = perf_counter()
        try:
            return (self.plain if is_plain else self.compiled)(*args, **kwargs)
        finally:
            seconds = perf_counter() - began
            timings.note(seconds + (SECONDS_OF_LINK if is_plain else 0.0), is_plain=is_plain)

    def is_profitable(self, leaves: Sequence[Any]) -> bool | None:
        """Whether compiled code serves arguments of this size class faster; None while that is not known."""
        timings = self._timings.get(size_class(leaves))
        return None if timings is None else timings.chooses_code(has_loops=self.has_loops)

    def release(self) -> CompiledLink:
        """The link, which a chain may hold from now on."""
        self.compiled.links.clear()
        return self.link

    def reject(self, leaves: Sequence[Any]) -> str:
        """Do not run the code for arguments of this size class; the reason, for `explain`."""
        timings = self._timings[size_class(leaves)]
        plain, compiled = min(timings.plain) * 1e6, min(timings.compiled) * 1e6
        if self.repeats:
            self._timings = {}
        cause = "the code bails out, and " if self.repeats else ""
        return f"{cause}the plain function takes less time: {plain:.3g} us, compiled code {compiled:.3g} us"

    def most(self, leaves: Sequence[Any]) -> int:
        """The most elements of an array in calls that need not be timed again."""
        return max(MIN_TIMED_ELEMENTS, int(2 ** size_class(leaves)) - 1)
