"""`explain`: why an implementation was selected for an attr."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementations, op_schema
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import ArgumentTypeError
from jitkernels.selection.records import Measured
from jitkernels.selection.select import choose, known_record


@frozen_dataclass
class CandidateLine:
    """One implementation: usable or why not, and its measured seconds if there are any."""

    implementation: str
    reason: str | None
    seconds: float | None
    error: str | None


@frozen_dataclass
class Explanation:
    """The result of `explain`: a line per implementation, the winner, its variant and the rule that selected it."""

    attr: KernelAttr
    lines: tuple[CandidateLine, ...]
    winner: str
    variant: dict[str, object]
    rule: str

    def __str__(self) -> str:
        title = f"{self.attr.kernel_type.name}({self.attr.text()}): {self.winner}, {self.rule}"
        if self.variant:
            title += ", " + " ".join(f"{key}={value}" for key, value in self.variant.items())
        return "\n".join([title, *(f"  {_mark(line, self.winner)} {_text(line)}" for line in self.lines)])


def _mark(line: CandidateLine, winner: str) -> str:
    return ">" if line.implementation == winner else " "


def _text(line: CandidateLine) -> str:
    if line.reason is not None:
        return f"{line.implementation:10} cannot be used: {line.reason}"
    if line.error is not None:
        return f"{line.implementation:10} disqualified: {line.error}"
    time = "not measured" if line.seconds is None else f"{line.seconds * 1e6:.3f} us"
    return f"{line.implementation:10} {time}"


def explain(what: KernelAttr | Callable[..., Any] | str, *arguments: Any, **named: Any) -> Explanation:
    """Every implementation of an attr: usable or why not, its time if measured, which one wins and by which rule.

    `what` is an attr, or an everyday function or its name with the arguments of a call, such as
    ``explain(jk.softmax, x)``. Times are those of the attr's size class. Nothing is measured or built. Raises what the
    call would raise, such as NotUsableError where an implementation is pinned that cannot be used, and
    ArgumentTypeError for any other `what`.
    """
    attr = what if isinstance(what, KernelAttr) else _attr_of_call(what, arguments, named)
    if attr is what and (arguments or named):
        raise ArgumentTypeError("explain: expected an attr alone, or an everyday function with arguments")
    choice = choose(attr)
    record = choice.record or known_record(attr)
    lines = tuple(
        _line(name, candidate.reason_against(attr), record.candidates if record else ())
        for name, candidate in implementations(type(attr)).items()
    )
    return Explanation(attr, lines, choice.implementation.name, dict(choice.variant), choice.rule)


def _attr_of_call(what: object, arguments: Sequence[Any], named: Mapping[str, Any]) -> KernelAttr:
    """The attr of an everyday call; ``out`` does not affect it."""
    name = what if isinstance(what, str) else getattr(getattr(what, "__self__", None), "name", None)
    if not isinstance(name, str) or not (isinstance(what, str) or callable(what)):
        raise ArgumentTypeError(
            f"explain: expected an attr, an everyday function such as jk.softmax, or its name, got {what!r}"
        )
    attr_class = op_schema(name)
    if len(arguments) == len(attr_class.parameters().parameters) + 1:
        arguments = arguments[:-1]
    return attr_class.call(*arguments, **{key: value for key, value in named.items() if key != "out"}).attr


def _line(name: str, reason: str | None, measured: tuple[Measured, ...]) -> CandidateLine:
    own = [m for m in measured if m.implementation == name]
    seconds = next((m.seconds for m in own if m.seconds), None)  # best first: the variant it would use
    error = next((m.error for m in own if m.error), None) if seconds is None else None
    return CandidateLine(name, reason, seconds, error)
