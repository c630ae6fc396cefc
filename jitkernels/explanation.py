"""Why an attr is computed by what it is computed by."""

from dataclasses import dataclass

from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import choose, known_record
from jitkernels.registry import implementations
from jitkernels.tuning.store import Measured


@dataclass(frozen=True)
class Line:
    """One implementation: usable or why not, and its measured seconds if there are any."""

    implementation: str
    reason: str | None
    seconds: float | None
    error: str | None


@dataclass(frozen=True)
class Explanation:
    """What `explain` answers: a line per implementation, the winner, its variant and the rule that chose it."""

    attr: KernelAttr
    lines: tuple[Line, ...]
    winner: str
    variant: dict[str, object]
    rule: str

    def __str__(self) -> str:
        title = f"{self.attr.kernel_type.name}({self.attr.text()}): {self.winner}, {self.rule}"
        if self.variant:
            title += ", " + " ".join(f"{key}={value}" for key, value in self.variant.items())
        return "\n".join([title, *(f"  {_mark(line, self.winner)} {_text(line)}" for line in self.lines)])


def _mark(line: Line, winner: str) -> str:
    return ">" if line.implementation == winner else " "


def _text(line: Line) -> str:
    if line.reason is not None:
        return f"{line.implementation:10} cannot be used: {line.reason}"
    if line.error is not None:
        return f"{line.implementation:10} disqualified: {line.error}"
    time = "not measured" if line.seconds is None else f"{line.seconds * 1e6:.3f} us"
    return f"{line.implementation:10} {time}"


def explain(attr: KernelAttr) -> Explanation:
    """Every implementation of an attr: usable or why not, its time if measured, who wins and by which rule.

    Times are those of the attr's tuning class. Looks only: nothing is measured or built. Raises NotUsableError,
    as looking for the kernel does, where an implementation is pinned for this kernel that cannot be used.
    """
    choice = choose(attr)
    record = choice.record or known_record(attr)
    lines = tuple(
        _line(name, found.reason_against(attr), record.candidates if record else ())
        for name, found in implementations(type(attr)).items()
    )
    return Explanation(attr, lines, choice.implementation.name, dict(choice.variant), choice.rule)


def _line(name: str, reason: str | None, measured: tuple[Measured, ...]) -> Line:
    own = [m for m in measured if m.implementation == name]
    seconds = next(
        (m.seconds for m in own if m.seconds), None
    )  # best first: that of the variant it would use
    error = next((m.error for m in own if m.error), None) if seconds is None else None
    return Line(name, reason, seconds, error)
