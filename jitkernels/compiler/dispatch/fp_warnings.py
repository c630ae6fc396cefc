"""Floating-point warnings: reports what NumPy would, where compiled code has raised floating-point status flags.

Only NumPy knows which operation failed, at which line, and whether its own code fails there at all. So the plain
function runs once more on the same arguments; its results are discarded and its warnings are issued. This takes as long
as NumPy does, so reruns that report nothing new back off exponentially.
"""

import sys
import warnings
from collections.abc import Callable, Container, Iterable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.constant_failures import PREFIX, Failure
from jitkernels.compiler.dispatch.fp_error_model import WORDS, names, unsure
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.core import signal_exceptions
from jitkernels.runtime import fp_flag_handler, fp_status

PATIENCE, MOST_SKIPPED = 3, 1 << 16
"""Reruns without new warnings before calls are skipped, twice as many each time; the most that are skipped."""
LOUD = ("error", "always", "all")
"""Filter actions that show a repeated warning again."""


class Alarm:
    """Reports the floating-point errors of one specialization. `leaves_of` finds the arrays in arguments.

    `graph`: the compiled graph; `traced`: the graph as traced; `partial`: operations under a mask.

    Where the call overwrites arguments, the plain function cannot run again. Then only the kinds of errors whose flags
    are exact (raised where NumPy's operations fail, and nowhere else) are reported, with a text of our own; none if
    the function itself ignores some errors, `is_quiet`. In code that always writes arguments, most functions have
    exact flags (see `codegen.core.fp_special_guards`); where ``out`` aliases arguments of other code, arithmetic has.
    `failures` of constants are known from tracing, and reported with NumPy's text.

    `reports_fp_errors` is false for code whose own flags mean nothing: then only failures of constants are reported.
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
        failures: Iterable[Failure] = (),
        reports_fp_errors: bool = True,
    ) -> None:
        self._failures, self._hears_others = tuple(failures), reports_fp_errors
        self._function, self._leaves_of, self._writes = function, leaves_of, writes
        self._is_quiet = is_quiet
        self._unsure = unsure(graph, watched=writes, partial=partial)
        self._names = names(traced)
        self._records: dict[tuple[str, ...], Record] = {}
        self._before = Record()

    def kinds(self, flagged: Iterable[str]) -> tuple[str, ...]:
        """The kinds of errors of a call: of its constants, and the `flagged` ones of its operations."""
        if self.precedes_calls:  # `before` has reported them
            return ()
        kinds = {failure.kind for failure in self._failures}
        return tuple(sorted(kinds.union(flagged) if self._hears_others else kinds))

    @property
    def precedes_calls(self) -> bool:
        """Whether the plain function runs instead of the code, as it cannot run again on overwritten arguments.

        This holds for constants that fail in loops and branches which a call may not execute.
        """
        return self._writes and not all(failure.is_certain for failure in self._failures)

    def before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The result of the plain function in a tuple, with its warnings issued, if it has to run instead; else ()."""
        if not self.precedes_calls:
            return ()
        choices: Any = np.geterr()
        logged: Any = {failure.kind: "log" for failure in self._failures if choices[failure.kind] == "warn"}
        if not logged or not self._before.is_due():
            return ()
        log = Log()
        try:
            with np.errstate(call=log, **logged):
                return (self._function(*args, **kwargs),)
        finally:
            self._before.note(log.told)

    def hear(self, flagged: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
        """Warn as NumPy would. Raises the exceptions that warning filters request.

        The flagged kinds may differ from NumPy's: log(0) need not raise the divide flag. Returns how many later reports
        of these kinds the caller may skip.
        """
        record = self._records.get(flagged)
        if record is None:
            record = self._records[flagged] = Record()
        if not record.is_due():
            return 0
        logged: Any = {kind: "log" for kind, choice in np.geterr().items() if choice == "warn"}
        if self._is_overwritten(args, kwargs, out):
            self._say_failures(logged)
            known = {failure.kind for failure in self._failures}
            if not self._is_quiet:
                self._say(kind for kind in flagged if kind in logged and kind not in {*self._unsure, *known})
            return 0
        log = Log()
        try:
            with np.errstate(call=log, **logged):
                self._function(*args, **kwargs)
        except Warning:
            raise
        except Exception as error:  # the results are there, whatever the plain function runs into
            if signal_exceptions.raised_by_signal_handler(error):
                raise
        finally:
            record.note(log.told)
        return record.given_away()

    def _say(self, kinds: Iterable[str]) -> None:
        """Warn of errors somewhere in the function."""
        function: Any = self._function
        code = getattr(function, "__code__", None)
        if code is None:
            return
        for kind in kinds:
            text = f"{WORDS[kind]} encountered in {self._names.get(kind, function.__name__)}"
            self._warn(text, code.co_filename, code.co_firstlineno)

    def _say_failures(self, kinds: Container[str]) -> None:
        """Repeat the warnings of constants that failed during tracing."""
        for failure in self._failures:
            if failure.is_certain and failure.kind in kinds:
                self._warn(failure.text, failure.file, failure.line)

    def _warn(self, text: str, file: str, line: int) -> None:
        names: Any = getattr(self._function, "__globals__", {})
        registry = names.setdefault("__warningregistry__", {})
        module = names.get("__name__", "<string>")
        warnings.warn_explicit(text, RuntimeWarning, file, line, module, registry)

    def _is_overwritten(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> bool:
        if self._writes or out is None:
            return self._writes
        outs = out if isinstance(out, tuple) else (out,)
        leaves = [leaf for leaf in self._leaves_of(args, kwargs) if type(leaf) is np.ndarray]
        return any(np.may_share_memory(one, leaf) for one in outs for leaf in leaves)


def of(function: Callable[..., Any], specialisation: Any, leaves_of: Callable[[Any, Any], list[Any]]) -> Alarm | None:
    """The alarm of a specialization; None for arrays of other libraries, or if no warning can be trusted.

    Flags cannot be trusted for a function that ignores errors and writes to its arguments (NumPy cannot run again), nor
    for code with loops or branches (LLVM speculates operations in these). Failures of constants are known everywhere.
    """
    writes, is_quiet = bool(specialisation.written), specialisation.is_quiet
    failures = specialisation.failures
    reports_fp_errors = not (is_quiet and writes) and not specialisation.has_flows
    if specialisation.has_foreign or not (reports_fp_errors or failures):
        return None
    program = specialisation.program
    if failures and hasattr(program, "raised"):
        program.raised, program.reports_fp_errors = frozenset(one.kind for one in failures), reports_fp_errors
    graph = getattr(program, "graph", specialisation.graph)
    return Alarm(
        function,
        leaves_of,
        graph,
        writes=writes,
        is_quiet=is_quiet,
        traced=specialisation.graph or (),
        partial=specialisation.partial,
        failures=failures,
        reports_fp_errors=reports_fp_errors,
    )


class LinkedWarningReporter:
    """The alarm of one inline-cache link; compiled code calls it with the arguments of the function."""

    def __init__(self, alarm: Alarm) -> None:
        self.alarm = alarm
        self.link: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        out = kwargs.pop("out", None)
        found = self.alarm.kinds(fp_status.kinds(int(self.link[fp_flag_handler.FLAGS])))
        self.link[fp_flag_handler.SKIPS] = self.alarm.hear(found, args, kwargs, out)


class Record:
    """The known warnings of some kinds of errors, and how many reports to skip.

    Known warnings were issued under some filters, which show each once per source line; other filters reset the record.
    """

    def __init__(self) -> None:
        self.skips = self.in_vain = 0
        self.known: set[Place] = set()
        self.filters: Any = None
        self.as_they_were: tuple[Any, ...] = ()

    def is_due(self) -> bool:
        """Whether the plain function runs for this report."""
        filters = warnings.filters
        if self.known and (self.filters is not filters or self.as_they_were != tuple(filters)):
            self.__init__()  # type: ignore[misc]  # start over
        if self.skips:
            self.skips -= 1
            return False
        return True

    def given_away(self) -> int:
        """Hand the skip count to the caller; 0 where warnings are known, as a change of filters must reset these."""
        if self.known:
            return 0
        given, self.skips = self.skips, 0
        return given

    def note(self, reported: "list[Place]") -> None:
        """Record the warnings of one rerun, and back off if they are not new."""
        filters = warnings.filters
        if reported:
            self.filters, self.as_they_were = filters, tuple(filters)
        if not self.known.issuperset(reported) or (reported and _are_loud(filters)):
            self.in_vain = 0
            self.known |= set(reported)
            return
        self.in_vain += 1
        self.skips = min(2 ** max(self.in_vain - PATIENCE, 0), MOST_SKIPPED) - 1


def _are_loud(filters: Iterable[Any]) -> bool:
    """Whether `filters` may show a RuntimeWarning each time it is issued."""
    for action, text, category, module, line in filters:
        if issubclass(RuntimeWarning, category):
            if action in LOUD:
                return True
            if text is None and module is None and not line:
                return False
    return False


Place = tuple[str, str, int]
"""A warning's text, file and line."""


class Log:
    """The ``call`` object of `numpy.errstate`: issues each warning at the line that caused it, and records it."""

    def __init__(self) -> None:
        self.told: list[Place] = []

    def write(self, text: str) -> None:
        """One warning."""
        message, frame = text.removeprefix(PREFIX).rstrip(), sys._getframe(1)
        self.told.append((message, frame.f_code.co_filename, frame.f_lineno))
        warnings.warn(message, RuntimeWarning, stacklevel=2)
