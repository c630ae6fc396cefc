"""What `explain` tells of graph breaks: the lines that Python runs and why, the compiled parts and their calls."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jitkernels.compiler.diagnostics.explain import FunctionExplanation


class GraphBreak(NamedTuple):
    """A statement that Python runs: its `line`, the `reason`, and the line of the Python `loop` around it, or 0."""

    line: int
    reason: str
    loop: int

    def __str__(self) -> str:
        return f"break in line {self.line}, {_how_often(self.loop)}: {self.reason}"


class PartExplanation(NamedTuple):
    """A compiled part: its `first` and `last` line, the line of the Python `loop` around it, or 0.

    `is_python`: whether its statements stay in the function, for some sizes of arguments, because Python takes less
    time; `explanation`: of all that it was compiled to so far.
    """

    first: int
    last: int
    loop: int
    is_python: bool
    explanation: "FunctionExplanation"

    @property
    def lines(self) -> list[str]:
        """The part, as lines of text."""
        where = f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"
        head = f"part of {where}, {_how_often(self.loop)}"
        if self.is_python:
            return [f"{head}: Python takes less time and runs it, at the sizes of latest calls"]
        inside = self.explanation.specializations
        if not inside and not self.explanation.breaks:
            return [f"{head}: compiled when it is first reached"]
        return [f"{head}:", *(f"  {line}" for one in inside or (self.explanation,) for line in str(one).splitlines())]


class DividedExplanation(NamedTuple):
    """The breaks and parts of a function. `slower`: times that show why Python runs all of it at the latest sizes."""

    breaks: tuple[GraphBreak, ...] = ()
    parts: tuple[PartExplanation, ...] = ()
    slower: str = ""

    @property
    def lines(self) -> list[str]:
        """All of it as lines of text."""
        slower = [f"Python takes less time and runs all of it, at the sizes of latest calls: {self.slower}"]
        return [
            *(slower if self.slower else ()),
            *map(str, self.breaks),
            *(line for part in self.parts for line in part.lines),
        ]

    def cost(self) -> str:
        """The calls of compiled parts in a call of the function."""
        return calls_of(() if self.slower else self.parts)


WHOLE = DividedExplanation()
"""That of a function without breaks."""


def calls_of(parts: Sequence[PartExplanation]) -> str:
    """How often compiled code is called, by the loops that Python runs."""
    counts = Counter(part.loop for part in parts if not part.is_python)
    texts = [f"{_calls(counts[loop])} of compiled parts {_how_often(loop)}" for loop in sorted(counts)]
    return ", ".join(texts) or "no calls of compiled parts"


def _calls(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'}"


def _how_often(loop: int) -> str:
    return f"in each iteration of the loop in line {loop}" if loop else "in each call"
