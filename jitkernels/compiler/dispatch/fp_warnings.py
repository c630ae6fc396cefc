"""Floating-point warnings: reports what NumPy would, where compiled code has raised floating-point status flags.

Only NumPy knows which operation failed, at which line, and whether its own code fails there at all. So the plain
function runs once more on the same arguments; its results are discarded and its warnings are issued. This takes as long
as NumPy does, so reruns that report nothing new back off exponentially.
"""

import sys
import warnings
from collections.abc import Container, Iterable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.constant_failures import WARNING_PREFIX
from jitkernels.compiler.capture.pytree.call_signature import CallSignature
from jitkernels.compiler.dispatch.fp_error_model import WORDS, operations_by_kind, unsure
from jitkernels.core import signal_exceptions
from jitkernels.runtime import fp_flag_handler, fp_status

FUTILE_RERUNS, MAX_SKIPS = 3, 1 << 16
"""Reruns without new warnings before calls are skipped, twice as many each time; the most that are skipped."""
LOUD = ("error", "always", "all")
"""Filter actions that show a repeated warning again."""


class WarningReporter:
    """Reports the floating-point errors of one specialization.

    Where the call overwrites arguments, the plain function cannot run again. Then only the kinds of errors whose flags
    are exact (raised where NumPy's operations fail, and nowhere else) are reported, with a text of our own; none if
    the function itself ignores some errors, `is_quiet`. In code that always writes arguments, most functions have
    exact flags (see `codegen.core.fp_special_guards`); where ``out`` aliases arguments of other code, arithmetic has.
    Failures of constants are known from tracing, and reported with NumPy's text.
    """

    def __init__(self, signature: CallSignature, specialization: Any, *, reports_flags: bool) -> None:
        """`reports_flags` is false for code whose flags mean nothing: only failures of constants are reported then."""
        graph = getattr(specialization.program, "graph", specialization.graph)
        self._signature, self._reports_flags = signature, reports_flags
        self._failures, self._is_quiet = specialization.failures, specialization.is_quiet
        self._writes = bool(specialization.written)
        self._unsure = unsure(graph, watched=self._writes, partial=specialization.partial)
        self._operations = operations_by_kind(specialization.graph or ())
        self._known: dict[tuple[str, ...], KnownWarnings] = {}
        self._known_of_constants = KnownWarnings()
        self.precedes_calls = self._writes and not all(failure.is_certain for failure in self._failures)
        """Whether the plain function runs instead of the code, as it cannot run again on overwritten arguments.

        This holds for constants that fail in loops and branches which a call may not execute.
        """

    def kinds(self, flagged: Iterable[str]) -> tuple[str, ...]:
        """The kinds of errors of a call: of its constants, and the `flagged` ones of its operations."""
        if self.precedes_calls:  # `run_plain` has reported them
            return ()
        kinds = {failure.kind for failure in self._failures}
        return tuple(sorted(kinds.union(flagged) if self._reports_flags else kinds))

    def run_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Run the plain function in place of the code, where it `precedes_calls` and a warning is due.

        Returns its result in a tuple, or () if the code is to run.
        """
        choices: Any = np.geterr()
        logged: Any = {failure.kind: "log" for failure in self._failures if choices[failure.kind] == "warn"}
        if not logged or not self._known_of_constants.is_due():
            return ()
        log = WarningLog()
        try:
            with np.errstate(call=log, **logged):
                return (self._signature.function(*args, **kwargs),)
        finally:
            self._known_of_constants.note(log.reported)

    def report(self, flagged: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
        """Warn as NumPy would. Raises the exceptions that warning filters request.

        The flagged kinds may differ from NumPy's: log(0) need not raise the divide flag. Returns how many later reports
        of these kinds the caller may skip.
        """
        known = self._known.get(flagged)
        if known is None:
            known = self._known[flagged] = KnownWarnings()
        if not known.is_due():
            return 0
        logged: Any = {kind: "log" for kind, choice in np.geterr().items() if choice == "warn"}
        if self._is_overwritten(args, kwargs, out):
            self._warn_of_constants(logged)
            failed = {failure.kind for failure in self._failures}
            if not self._is_quiet:
                self._warn_of(kind for kind in flagged if kind in logged and kind not in {*self._unsure, *failed})
            return 0
        log = WarningLog()
        try:
            with np.errstate(call=log, **logged):
                self._signature.function(*args, **kwargs)
        except Warning:
            raise
        except Exception as error:  # the results are there, whatever the plain function runs into
            if signal_exceptions.raised_by_signal_handler(error):
                raise
        finally:
            known.note(log.reported)
        return known.take_skips()

    def _warn_of(self, kinds: Iterable[str]) -> None:
        """Warn of errors somewhere in the function."""
        function: Any = self._signature.function
        code = getattr(function, "__code__", None)
        if code is None:
            return
        for kind in kinds:
            text = f"{WORDS[kind]} encountered in {self._operations.get(kind, function.__name__)}"
            self._warn(text, code.co_filename, code.co_firstlineno)

    def _warn_of_constants(self, kinds: Container[str]) -> None:
        """Repeat the warnings of constants that failed during tracing."""
        for failure in self._failures:
            if failure.is_certain and failure.kind in kinds:
                self._warn(failure.text, failure.file, failure.line)

    def _warn(self, text: str, file: str, line: int) -> None:
        names: Any = getattr(self._signature.function, "__globals__", {})
        registry = names.setdefault("__warningregistry__", {})
        module = names.get("__name__", "<string>")
        warnings.warn_explicit(text, RuntimeWarning, file, line, module, registry)

    def _is_overwritten(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> bool:
        if self._writes or out is None:
            return self._writes
        outs = out if isinstance(out, tuple) else (out,)
        leaves = [leaf for leaf in self._signature.flatten(args, kwargs).leaves if type(leaf) is np.ndarray]
        return any(np.may_share_memory(target, leaf) for target in outs for leaf in leaves)


def warning_reporter(signature: CallSignature, specialization: Any) -> WarningReporter | None:
    """The reporter of a specialization; None for arrays of other libraries, or if no warning can be trusted.

    Flags cannot be trusted for a function that ignores errors and writes to its arguments (NumPy cannot run again), nor
    for code with loops or branches (LLVM speculates operations in these). Failures of constants are known everywhere.
    """
    failures, program = specialization.failures, specialization.program
    reports_flags = not (specialization.is_quiet and specialization.written) and not specialization.has_flows
    if specialization.has_foreign or not (reports_flags or failures):
        return None
    if failures and hasattr(program, "raised"):
        program.raised, program.reports_fp_errors = frozenset(failure.kind for failure in failures), reports_flags
    return WarningReporter(signature, specialization, reports_flags=reports_flags)


class LinkedWarningReporter:
    """The reporter of one inline-cache link; compiled code calls it with the arguments of the function."""

    def __init__(self, reporter: WarningReporter) -> None:
        self.reporter = reporter
        self.link: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        out = kwargs.pop("out", None)
        kinds = self.reporter.kinds(fp_status.kinds(int(self.link[fp_flag_handler.FLAGS])))
        self.link[fp_flag_handler.SKIPS] = self.reporter.report(kinds, args, kwargs, out)


class KnownWarnings:
    """The known warnings of some kinds of errors, and how many reports to skip.

    Known warnings were issued under some filters, which show each once per source line; other filters reset this.
    """

    def __init__(self) -> None:
        self.skips = self.futile = 0
        self.known: set[WarningPlace] = set()
        self.filters: Any = None
        self.filters_then: tuple[Any, ...] = ()

    def is_due(self) -> bool:
        """Whether the plain function runs for this report."""
        filters = warnings.filters
        if self.known and (self.filters is not filters or self.filters_then != tuple(filters)):
            self.__init__()  # type: ignore[misc]  # start over
        if self.skips:
            self.skips -= 1
            return False
        return True

    def take_skips(self) -> int:
        """Hand the skip count to the caller; 0 where warnings are known, as a change of filters must reset these."""
        if self.known:
            return 0
        skips, self.skips = self.skips, 0
        return skips

    def note(self, reported: "list[WarningPlace]") -> None:
        """Record the warnings of one rerun, and back off if they are not new."""
        filters = warnings.filters
        if reported:
            self.filters, self.filters_then = filters, tuple(filters)
        if not self.known.issuperset(reported) or (reported and _may_show_each_time(filters)):
            self.futile = 0
            self.known |= set(reported)
            return
        self.futile += 1
        self.skips = min(2 ** max(self.futile - FUTILE_RERUNS, 0), MAX_SKIPS) - 1


def _may_show_each_time(filters: Iterable[Any]) -> bool:
    """Whether `filters` may show a RuntimeWarning each time it is issued."""
    for action, text, category, module, line in filters:
        if issubclass(RuntimeWarning, category):
            if action in LOUD:
                return True
            if text is None and module is None and not line:
                return False
    return False


WarningPlace = tuple[str, str, int]
"""A warning's text, file and line."""


class WarningLog:
    """The ``call`` object of `numpy.errstate`: issues each warning at the line that caused it, and records it."""

    def __init__(self) -> None:
        self.reported: list[WarningPlace] = []

    def write(self, text: str) -> None:
        """One warning."""
        message, frame = text.removeprefix(WARNING_PREFIX).rstrip(), sys._getframe(1)
        self.reported.append((message, frame.f_code.co_filename, frame.f_lineno))
        warnings.warn(message, RuntimeWarning, stacklevel=2)
