"""Warnings of floating-point errors: what NumPy would have said where compiled code has set flags of the processor.

Which operation failed, at which line, and whether NumPy's own code fails there at all, only NumPy can say. So the plain
function is run once more with the same arguments, its results are thrown away, and what it warns of is the warning.
This takes as long as NumPy does; so what was in vain, or gave nothing that is not known, is done ever less often.
"""

import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from jitkernels.graph.cones import is_delicate
from jitkernels.graph.emit.watched import is_watched
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.scalars import SCALARS
from jitkernels.native import processor_flags, telling

PATIENCE, MOST_SKIPPED = 3, 1 << 16
"""Runs without anything new after which calls are skipped, twice as many each time, and how many at most."""
PREFIX = "Warning: "
WORDS = {"divide": "divide by zero", "over": "overflow", "invalid": "invalid value"}
ARITHMETIC = frozenset(
    {
        "input", "constant", "extent", "view", "reshape", "update", "add", "subtract", "multiply", "divide", "square",
        "reciprocal", "sqrt", "negative", "positive", "absolute", "fabs", "copysign",
    }
)  # fmt: skip
"""Operations of floats that are the processor's own, which fail where NumPy's do; and those that compute nothing."""
SILENT = frozenset(
    {
        "floor", "ceil", "trunc", "rint", "sign", "signbit", "heaviside", "equal", "not_equal", "isnan", "isinf",
        "isfinite", "where", "logical_and", "logical_or", "logical_xor", "logical_not",
    }
)  # fmt: skip
"""Operations that neither fail nor set flags; but for half precision, which takes comparisons."""
POLES = frozenset(
    {"divide", "reciprocal", "floor_divide", "power", "log", "log2", "log10", "log1p", "arctanh"}
)
"""Operations that divide by zero."""
OVERFLOWING = frozenset(
    {
        "add", "subtract", "multiply", "divide", "square", "reciprocal", "cast", "floor_divide", "power", "exp", "exp2",
        "expm1", "sinh", "cosh", "hypot", "logaddexp", "logaddexp2",
    }
)  # fmt: skip
"""Operations of floats whose results may be too large."""
SAFE = frozenset(
    {
        "input", "constant", "extent", "view", "reshape", "update", "negative", "positive", "absolute", "fabs",
        "copysign", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin",
    }
)  # fmt: skip
"""Operations that never fail in NumPy, beside silent ones."""
NAMED = frozenset({*(name for name, scalar in SCALARS.items() if isinstance(scalar.numpy, np.ufunc)), "cast"})
"""Operations that have the names by which NumPy warns."""
LOUD = ("error", "always", "all")
"""Actions of filters by which a warning that was shown before is shown again."""


class Alarm:
    """Called where code of one specialisation has failed. `leaves_of` finds the arrays in arguments.

    `graph` is what was compiled, `traced` what was made of the function.

    Arguments that the function writes, or that results are written over, are no more what they were, so that there is
    nothing to ask NumPy: what is computed by operations that set flags where NumPy's fail is warned of in words of our
    own then, and nothing else is. For code that always writes arguments, most functions do (see
    `jitkernels.graph.emit.watched`); for results written over arguments of a function that does not, arithmetic does.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        leaves_of: Callable[[Any, Any], list[Any]],
        graph: Graph | None,
        *,
        writes: bool,
        traced: Iterable[Node] = (),
    ) -> None:
        self._function, self._leaves_of, self._writes = function, leaves_of, writes
        if writes:
            self._is_sure = graph is not None and all(map(_is_sure_where_watched, graph))
        else:
            self._is_sure = graph is not None and all(map(_is_sure, graph)) and any(map(is_delicate, graph))
        self._names = names(traced)
        self._records: dict[tuple[str, ...], Record] = {}

    def hear(self, found: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
        """Warn as NumPy would. Raises what filters of warnings make of that.

        The kinds of errors that were found are not those that NumPy finds: log(0) may be no division. Returns how many
        times nobody needs to hear of these.
        """
        record = self._records.get(found)
        if record is None:
            record = self._records[found] = Record()
        if not record.is_due():
            return 0
        asked: Any = {kind: "log" for kind, choice in np.geterr().items() if choice == "warn"}
        if self._is_overwritten(args, kwargs, out):
            if self._is_sure:
                self._say(kind for kind in found if kind in asked)
            return 0
        log = Log()
        try:
            with np.errstate(call=log, **asked):
                self._function(*args, **kwargs)
        except Warning:
            raise
        except Exception:  # noqa: BLE001  # the results are there, whatever the plain function runs into
            pass
        finally:
            record.note(log.told)
        return record.given_away()

    def _say(self, kinds: Iterable[str]) -> None:
        """Warn of errors somewhere in the function."""
        function: Any = self._function
        code, names = getattr(function, "__code__", None), getattr(function, "__globals__", {})
        if code is None:
            return
        registry = names.setdefault("__warningregistry__", {})
        for kind in kinds:
            text = f"{WORDS[kind]} encountered in {self._names.get(kind, function.__name__)}"
            warnings.warn_explicit(
                text, RuntimeWarning, code.co_filename, code.co_firstlineno, names.get("__name__"), registry
            )

    def _is_overwritten(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> bool:
        if self._writes or out is None:
            return self._writes
        outs = out if isinstance(out, tuple) else (out,)
        leaves = [leaf for leaf in self._leaves_of(args, kwargs) if type(leaf) is np.ndarray]
        return any(np.may_share_memory(one, leaf) for one in outs for leaf in leaves)


def _is_sure_where_watched(node: Node) -> bool:
    """The same for code that overwrites arguments, whose functions are watched."""
    kinds = tuple(one.dtype for one in node.inputs)
    is_silent = node.operation in SILENT and "float16" not in kinds
    return is_silent or _is_sure(node) or is_watched(node.operation, kinds)


def _is_sure(node: Node) -> bool:
    """Whether flags are set by a node for what NumPy warns of, and for nothing else.

    Sums are not: what they keep beside them, of what rounding lost, is NaN for infinities. Nor is half precision, which
    takes comparisons.
    """
    if node.operation == "cast":
        return node.dtype in ("float32", "float64")
    return node.operation in ARITHMETIC and node.dtype != "float16"


def of(
    function: Callable[..., Any], specialisation: Any, leaves_of: Callable[[Any, Any], list[Any]]
) -> Alarm | None:
    """The alarm of a specialisation; None where errors are ignored, or arrays of other libraries are read."""
    if specialisation.is_quiet or specialisation.has_foreign:
        return None
    graph = getattr(specialisation.program, "graph", specialisation.graph)
    return Alarm(
        function, leaves_of, graph, writes=bool(specialisation.written), traced=specialisation.graph or ()
    )


def names(graph: Iterable[Node]) -> dict[str, str]:
    """The operation that NumPy would name for each kind of errors, where there is only one that may fail so."""
    failing: dict[str, set[str]] = {"divide": set(), "over": set(), "invalid": set()}
    for node in graph:
        operation = node.operation
        if operation in SAFE or operation in SILENT:
            continue
        failing["invalid"].add(operation)
        for kind, known in ("divide", POLES), ("over", OVERFLOWING):
            if operation in known or operation not in NAMED:
                failing[kind].add(operation)
    return {kind: min(found) for kind, found in failing.items() if len(found) == 1 and found <= NAMED}


class LinkedAlarm:
    """The alarm of one link, which compiled code calls with the arguments of the function."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm
        self.link: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        out = kwargs.pop("out", None)
        found = processor_flags.kinds(int(self.link[telling.FLAGS]))
        self.link[telling.SKIPS] = self.alarm.hear(found, args, kwargs, out)


class Record:
    """What came of the alarms for some kinds of errors, and how many are to be skipped.

    What is known was given under some filters, which show it once for each place; under others it is asked again.
    """

    def __init__(self) -> None:
        self.skips = self.in_vain = 0
        self.known: set[Place] = set()
        self.filters: Any = None
        self.as_they_were: tuple[Any, ...] = ()

    def is_due(self) -> bool:
        """Whether this alarm is looked into."""
        filters = warnings.filters
        if self.known and (self.filters is not filters or self.as_they_were != tuple(filters)):
            self.__init__()  # type: ignore[misc]  # all over again
        if self.skips:
            self.skips -= 1
            return False
        return True

    def given_away(self) -> int:
        """How many are skipped under whatever filters: where nothing is known yet, whoever calls may count itself."""
        if self.known:
            return 0
        given, self.skips = self.skips, 0
        return given

    def note(self, told: "list[Place]") -> None:
        """Remember what was warned of."""
        filters = warnings.filters
        if told:
            self.filters, self.as_they_were = filters, tuple(filters)
        if not self.known.issuperset(told) or (told and _are_loud(filters)):
            self.in_vain = 0
            self.known |= set(told)
            return
        self.in_vain += 1
        self.skips = min(2 ** max(self.in_vain - PATIENCE, 0), MOST_SKIPPED) - 1


def _are_loud(filters: Iterable[Any]) -> bool:
    """Whether some warning of these may be shown each time: filters for some texts or places alone may be its."""
    for action, text, category, module, line in filters:
        if issubclass(RuntimeWarning, category):
            if action in LOUD:
                return True
            if text is None and module is None and not line:
                return False
    return False


Place = tuple[str, str, int]
"""A warning's text, and the file and line that it is of."""


class Log:
    """What NumPy writes its warnings to, each from the line that it is of: they are given there, and remembered."""

    def __init__(self) -> None:
        self.told: list[Place] = []

    def write(self, text: str) -> None:
        """One warning."""
        message, frame = text.removeprefix(PREFIX).rstrip(), sys._getframe(1)
        self.told.append((message, frame.f_code.co_filename, frame.f_lineno))
        warnings.warn(message, RuntimeWarning, stacklevel=2)
