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

from jitkernels import handlers
from jitkernels.frontends.failing import WORDS, names, unsure
from jitkernels.graph.ir import Graph, Node
from jitkernels.native import processor_flags, telling

PATIENCE, MOST_SKIPPED = 3, 1 << 16
"""Runs without anything new after which calls are skipped, twice as many each time, and how many at most."""
PREFIX = "Warning: "
LOUD = ("error", "always", "all")
"""Actions of filters by which a warning that was shown before is shown again."""


class Alarm:
    """Called where code of one specialisation has failed. `leaves_of` finds the arrays in arguments.

    `graph` is what was compiled, `traced` what was made of the function, `partial` are operations that only chosen
    elements take part in.

    Arguments that the function writes, or that results are written over, are no more what they were, so that there is
    nothing to ask NumPy: kinds of errors of which the operations set no flags but where NumPy's fail are warned of in
    words of our own then, and others are not; none if the function ignores some itself, `is_quiet`. In code that
    always writes arguments, most functions are such (see `jitkernels.graph.emit.watched`); where results are written
    over arguments of other code, arithmetic is.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        leaves_of: Callable[[Any, Any], list[Any]],
        graph: Graph | None,
        *,
        writes: bool,
        is_quiet: bool = False,
        traced: Iterable[Node] = (),
        partial: Iterable[str] = (),
    ) -> None:
        self._function, self._leaves_of, self._writes = function, leaves_of, writes
        self._is_quiet = is_quiet
        self._unsure = unsure(graph, watched=writes, partial=partial)
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
            if not self._is_quiet:
                self._say(kind for kind in found if kind in asked and kind not in self._unsure)
            return 0
        log = Log()
        try:
            with np.errstate(call=log, **asked):
                self._function(*args, **kwargs)
        except Warning:
            raise
        except Exception as error:  # the results are there, whatever the plain function runs into
            if handlers.have_raised(error):
                raise
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
                text,
                RuntimeWarning,
                code.co_filename,
                code.co_firstlineno,
                names.get("__name__", "<string>"),
                registry,
            )

    def _is_overwritten(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> bool:
        if self._writes or out is None:
            return self._writes
        outs = out if isinstance(out, tuple) else (out,)
        leaves = [leaf for leaf in self._leaves_of(args, kwargs) if type(leaf) is np.ndarray]
        return any(np.may_share_memory(one, leaf) for one in outs for leaf in leaves)


def of(
    function: Callable[..., Any], specialisation: Any, leaves_of: Callable[[Any, Any], list[Any]]
) -> Alarm | None:
    """The alarm of a specialisation; None where arrays of other libraries are read, or nobody knows what to warn of.

    That is so of a function which ignores errors and writes to its arguments, as NumPy cannot be asked afterwards.
    And where there are loops or branches of the code: LLVM computes ahead in these what is not needed in the end.
    """
    writes, is_quiet = bool(specialisation.written), specialisation.is_quiet
    if (is_quiet and writes) or specialisation.has_foreign or specialisation.has_flows:
        return None
    graph = getattr(specialisation.program, "graph", specialisation.graph)
    return Alarm(
        function,
        leaves_of,
        graph,
        writes=writes,
        is_quiet=is_quiet,
        traced=specialisation.graph or (),
        partial=specialisation.partial,
    )


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
