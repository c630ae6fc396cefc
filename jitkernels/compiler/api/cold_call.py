"""The cold path of a call: look up its specialization, trace and lower it if there is none, and link an entry to it.

Calls come here if no compiled entry accepted them, which costs 30 us and more: `PythonEntries` counts the reasons. The
arguments pass from stage to stage as one `FlatCall`; ARCHITECTURE.md draws the path.
"""

import contextlib
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from jitkernels.compiler.api import (
    argument_libraries,
    fallback_policy,
    foreign_arguments,
    labelled_arguments,
    out_argument,
)
from jitkernels.compiler.api.graph_breaks import Division, GraphBreaks
from jitkernels.compiler.api.timed_calls import TimedCalls
from jitkernels.compiler.capture.pytree import recompile_limit
from jitkernels.compiler.capture.pytree.call_signature import CallSignature, FlatCall
from jitkernels.compiler.capture.pytree.result_spec import ResultInputs
from jitkernels.compiler.diagnostics.differential_check import Check
from jitkernels.compiler.dispatch import dispatch_chain, program_entry, python_call_stats
from jitkernels.compiler.dispatch.compiled_link import CompiledLink
from jitkernels.compiler.dispatch.fp_warnings import warning_reporter
from jitkernels.compiler.dispatch.object_guards import UnreachableError
from jitkernels.compiler.dispatch.specialization import MANY_ELEMENTS, Specialization, specialize
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.core import hooks, settings, signal_exceptions
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import DifferenceError, JitKernelsError, WorkspaceError
from jitkernels.runtime import errstate, workspace_allocator
from jitkernels.runtime.loading import build_ahead

MAX_FORMS = 16
"""Most call forms (numbers of positional arguments, keyword names) of one specialization that are linked."""
MAX_KEYS, MAX_OF_A_KEY = 4096, 32
"""Most keys of specializations of a function, and specializations of a key."""


class ColdCalls(TimedCalls):
    """The specializations of a function, and its calls that enter through Python.

    `is_part`: a part between two graph breaks. `is_interpreter`: the plain function interprets a model node by node, so
    that compiled code is faster for small arrays, too.
    """

    _is_plain: ClassVar[bool] = True
    """Whether a call of the plain function is a valid fallback."""

    def __init__(self, function: Any, signature: CallSignature, config: JitConfig) -> None:
        self.__wrapped__, self.config, self._signature = function, config, signature
        self._specializations: dict[Any, list[Specialization]] = {}
        self._fallbacks: dict[str, int] = {}
        self._recompile_limit, self._hits, self._entries = (
            recompile_limit.RecompileLimit(),
            0,
            python_call_stats.PythonEntries(),
        )
        self._takes_out = signature.takes("out")
        self._breaks: GraphBreaks | None = None
        self.is_part, self.is_interpreter, self._raised = False, False, frozenset[str]()
        plain = function if self._is_plain else None
        self._links = dispatch_chain.Links(self, self._call, plain, takes_out=self._takes_out)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """Serve a call that no compiled entry accepts: find or compile the code for its arguments, or fall back."""
        libraries = argument_libraries.libraries_among(args, kwargs)
        if libraries and (served := self._call_for(libraries, args, kwargs)) is not NotImplemented:
            return served
        out = None if self._takes_out else kwargs.pop("out", None)
        if self._is_plain and errstate.numpy_raises_or_calls():
            self._entries.note(python_call_stats.ERRORS)
            return self._plain(args, kwargs, out)
        began = perf_counter()
        specialization, call, symbols = self.look_up(args, kwargs)
        if specialization is None or specialization.graph is None:
            build_ahead.end_idle()
            divided = self._divided(specialization, args, kwargs)
            if divided is not None:
                return self._run_divided(divided, specialization, args, kwargs, out)
            return self._fall_back(specialization, args, kwargs, out)
        if specialization.written and not specialization.may_write(call.leaves):
            self._entries.note(python_call_stats.SHARED)
            return self._plain(args, kwargs, out, python_call_stats.SHARED)
        reporter = specialization.reporter
        if reporter is not None and reporter.precedes_calls and (plain := reporter.run_plain(args, kwargs)):
            return out_argument.copied_to(out, plain[0])
        specialization.calls += 1
        may_be_plain = self._is_plain and not (self.is_interpreter or self.config.requires_python_calls)
        largest = max((leaf.size for leaf in call.leaves if type(leaf) is np.ndarray), default=0)
        most = specialization.max_plain_elements_at_once
        if may_be_plain and largest <= most:
            build_ahead.end_idle()
            self._entries.note(python_call_stats.SMALL)
            self._links.enter_plain(self.__wrapped__, args, kwargs, out, most, specialization)
            return self._plain(args, kwargs, out)
        if self._link(specialization, call) or specialization.link_requested_symbols():
            if call.form in specialization.trials:
                return self._compare(specialization, call, args, kwargs, out)
            self._entries.note(python_call_stats.FIRST_CALLS)
            linked: Any = self  # the new link precedes this function in the chain, and serves the call
            return linked(*args, **kwargs) if out is None else linked(*args, **kwargs, out=out)
        if self._bails_out(specialization, call) or call.form in specialization.trials:
            return self._compare(specialization, call, args, kwargs, out)
        self._entries.note(specialization.entry_reason or python_call_stats.OTHERS)
        if not may_be_plain:
            return self._run(specialization, call, symbols, out)
        most = specialization.max_plain_elements
        if largest <= most:
            self._links.enter_plain(self.__wrapped__, args, kwargs, out, most, specialization)
            return self._plain(args, kwargs, out)
        return self._run_faster(specialization, call, symbols, out, began)

    def _call_for(self, libraries: frozenset[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve a call with objects of other libraries; NotImplemented where it is served as all others."""
        if argument_libraries.DASK in libraries:
            return hooks.call_on_chunks(self, args, kwargs)
        arrays = None
        if argument_libraries.ARRAYS in libraries:
            arrays = foreign_arguments.as_arrays(self, self._signature, args, kwargs)
        if arrays is not None:
            self._entries.note(foreign_arguments.REASON)
            function: Any = self
            result = function(*arrays[0], **arrays[1])
            return result if self._takes_out or kwargs.get("out") is None else kwargs["out"]
        labelled = sorted(libraries & labelled_arguments.LIBRARIES.keys())
        if not labelled or not self._is_plain or (not self._takes_out and kwargs.get("out") is not None):
            return NotImplemented
        named = kwargs if self._takes_out else {name: value for name, value in kwargs.items() if name != "out"}
        if labelled_arguments.are_small(args, named):
            self._entries.note(python_call_stats.SMALL)
            return self._plain(args, named, None)
        result = labelled_arguments.call(labelled[0], self, args, named)
        if result is not NotImplemented:
            self._entries.note(f"an object of {labelled[0]}")
        return result

    def look_up(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialization | None, Any, Any]:
        """Find the specialization for a call, or trace and compile it; the flat call; the values of its symbols."""
        try:
            call = self._signature.flatten(args, kwargs)
            candidates = self._specializations.get(call.key)
        except (UnsupportedError, TypeError) as error:
            self._count_fallback(str(error))
            return None, None, None
        for specialization in candidates or ():
            symbols = specialization.symbols_of(call.leaves)
            if symbols is not None:
                self._hits += 1
                return specialization, call, symbols
        with build_lock:
            if self._specializations.get(call.key) is not candidates:  # another thread has changed them
                return self.look_up(args, kwargs)
            candidates = candidates or []
            if len(candidates) >= MAX_OF_A_KEY:
                self._count_fallback(f"more than {MAX_OF_A_KEY} specializations for one signature")
                return None, call, None
            if not candidates and self._recompile_limit.is_reached(call.key):
                self._count_fallback(recompile_limit.REASON)
                return None, call, None
            is_cached = self.config.cache and self.config.backend == "native"
            if is_cached and not candidates and build_ahead.has_idle_core():
                build_ahead.prepare()
            with build_ahead.building_ahead(cached=is_cached):
                specialization = specialize(call.structure, call.leaves, self.config, may_assume=self._may_assume())
            reporter = warning_reporter(self._signature, specialization)
            specialization.reporter = reporter if self._is_plain else None  # which runs the plain function
            symbols = specialization.symbols_of(call.leaves)
            assert symbols is not None, "a trace whose guards hold for what was traced"
            if not candidates and len(self._specializations) >= MAX_KEYS:
                self._specializations.pop(next(iter(self._specializations)))
            self._specializations[call.key] = [specialization, *candidates]
            return specialization, call, symbols

    def _count_fallback(self, reason: str) -> None:
        """Record why a call falls back to NumPy."""
        self._fallbacks[reason] = self._fallbacks.pop(reason, 0) + 1

    def _fallback_reason(self, specialization: Specialization | None) -> str:
        """Why a call falls back to NumPy."""
        return next(reversed(self._fallbacks)) if specialization is None else specialization.reason

    def _divided(self, specialization: Specialization | None, args: Any, kwargs: Any) -> Division | None:
        """The divided function for a call without code; None where the plain one serves it."""
        if self._breaks is None or self.config.strict:
            return None
        reason = self._fallback_reason(specialization)
        if not self._signature.fits(args, kwargs):
            return None
        if specialization is not None and specialization.has_raised and reason not in self._raised:
            return None  # the plain function may raise the same: what raises in traces alone is a break, of later calls
        line = 0 if specialization is None else specialization.line
        return self._breaks.division(reason, line, args, kwargs)

    def runs_code(self) -> bool:
        """Whether any call runs compiled code, or parts of it do."""
        return self._has_code() or (self._breaks is not None and self._breaks.has_parts)

    def _has_code(self) -> bool:
        return any(one.graph is not None for many in [*self._specializations.values()] for one in many)

    def _fall_back(self, specialization: Specialization | None, args: Any, kwargs: Any, out: Any) -> Any:
        """Run the plain function where there is no code, and report why."""
        reason = self._fallback_reason(specialization)
        self._entries.note(f"falls back to NumPy: {reason}")
        # The function itself raises the TypeError of arguments that do not fit it, which is no fallback.
        has_raised = not self._signature.fits(args, kwargs) if specialization is None else specialization.has_raised
        may_divide = self._breaks is not None and has_raised and reason not in self._raised
        is_quiet = self.is_part or (may_divide and not self.config.strict)
        with fallback_policy.FallbackReport(self, reason, has_raised=has_raised, is_quiet=is_quiet):
            is_plain = specialization is None or specialization.always_falls_back([*self._specializations.values()])
            if is_plain and not may_divide:
                self._links.enter_plain(self.__wrapped__, args, kwargs, out, MANY_ELEMENTS)
            try:
                result = self._plain(args, kwargs, out)
            except Exception:
                if is_plain and may_divide:
                    self._links.enter_plain(self.__wrapped__, args, kwargs, out, MANY_ELEMENTS)
                raise
        if may_divide and len(self._raised) < MAX_KEYS:
            self._raised |= {reason}
        return result

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, reason: str = "") -> Any:  # noqa: ARG002
        """Run the plain function; `reason`: why, for those that have none and raise an error."""
        return out_argument.copied_to(out, self.__wrapped__(*args, **kwargs))

    def _run_faster(
        self, specialization: Specialization, call: FlatCall, symbols: dict[str, int], out: Any, began: float
    ) -> Any:
        """Run the compiled code, or the plain function where measurements show it is faster.

        Not for arrays of other libraries, for which the plain function may return other types.
        """
        timings = specialization.timings.setdefault(
            python_call_stats.size_class(call.leaves), python_call_stats.Timings()
        )
        may_be_plain = not specialization.has_foreign and settings.read("JITKERNELS_POLICY") != "reproducible"
        is_plain = may_be_plain and timings.prefers_plain(has_loops=specialization.has_flows)
        if is_plain:
            if timings.is_settled:
                self._links.enter_limited(self.__wrapped__, call.args, call.kwargs, out)
            began = perf_counter()
            result = self._plain(call.args, call.kwargs, out)
        else:
            result = self._run(specialization, call, symbols, out)
        if self._hits > 1:
            timings.note(perf_counter() - began, is_plain=is_plain)
        return result

    def _run(self, specialization: Specialization, call: FlatCall, symbols: dict[str, int], out: Any) -> Any:
        """Run the compiled code from Python, with the locks of random generators held, or the plain function."""
        with contextlib.ExitStack() as held:
            for acquire, release in call.locks:
                if not acquire(False):
                    return self._plain(call.args, call.kwargs, out)
                held.callback(release)
            return self._run_code(specialization, call, symbols, out)

    def _run_code(self, specialization: Specialization, call: FlatCall, symbols: dict[str, int], out: Any) -> Any:
        """Run the compiled code from Python, and report its floating-point errors."""
        leaves, flags, is_checked = call.leaves, errstate.FlagCollector(), self.config.is_checked
        before = [leaves[i].copy() for i in specialization.written] if specialization.may_raise or is_checked else ()
        arrays = None
        try:
            check = Check(specialization, leaves, symbols) if is_checked else None
            with np.errstate(all="ignore") if specialization.reporter is None else flags.collecting():
                arrays = specialization.run(leaves, symbols)
            if check is not None:
                check.compare(arrays, leaves, lambda: self._names(call))
        except Exception as error:  # the plain function raises it again, on restored arguments
            for i, array in zip(specialization.written, before, strict=False):
                leaves[i][...] = array
            if isinstance(error, DifferenceError | WorkspaceError) or signal_exceptions.raised_by_signal_handler(error):
                raise  # the plain function cannot do better, or the error came amid writes
            if isinstance(error, JitKernelsError):
                specialization.note_failure(error)
        if arrays is None:  # outside the handler, so that our error is no __context__ of the function's
            return self._plain(call.args, call.kwargs, out)
        specialization.report_fp_errors(flags.kinds, call.args, call.kwargs)
        return out_argument.copied_to(out, specialization.plan.make(ResultInputs(leaves, arrays, symbols)))

    def _link(self, specialization: Specialization, call: FlatCall) -> bool:
        """Link a compiled entry for calls of this form; whether there is a new one."""
        form, links = call.form, specialization.links
        if form in links or len(links) >= MAX_FORMS:
            return False
        with build_lock:
            if form in links:
                return False
            if self._links.are_many:
                self._unlink()
                links = specialization.links
            links[form] = None
            specialization.entry_reason = self._python_reason()
            if specialization.entry_reason:
                return False
            try:
                access, entry = program_entry.build_entry(specialization, call, self._signature)
                link = CompiledLink(entry, access, specialization.reporter, cached=self.config.cache)
                if self._may_compare() and specialization.may_be_unprofitable:
                    specialization.trials[form] = self._trial(specialization, link)
                else:
                    self._links.enter(link)
                links[form] = link
            except UnreachableError as error:
                specialization.entry_reason = str(error)
            except JitKernelsError as error:
                specialization.note_failure(error)
                specialization.entry_reason = f"the compiler failed: {error}"
            return links[form] is not None

    def _python_reason(self) -> str:
        """Why all calls enter through Python; empty if they need not."""
        if dispatch_chain.base is None:
            return "a Python or NumPy whose objects compiled code cannot read"
        return "calls are checked or timed, as the config asks" if self.config.requires_python_calls else ""

    def _entry_reason(self, specialization: Specialization, call: FlatCall) -> str:
        """Why calls of this form enter through Python; empty if an entry accepts them."""
        try:
            program_entry.build_entry(specialization, call, self._signature)
        except JitKernelsError as error:
            return f"the compiler failed: {error}"
        except UnreachableError as error:
            return str(error)
        return ""

    def _names(self, call: FlatCall) -> list[str]:
        """The names of the arrays and numbers in the arguments."""
        from jitkernels.compiler.diagnostics.explain import argument_names

        return argument_names(call.structure, self._signature.names)

    def release(self) -> None:
        """Discard all code of the function, and free the pooled workspaces (of all functions)."""
        workspace_allocator.release()
        with build_lock:
            self._specializations, self._recompile_limit = {}, recompile_limit.RecompileLimit()
            self._unlink()
            self._breaks, self._raised = self._breaks and self._breaks.renewed(), frozenset()

    def _unlink(self) -> None:
        self._links.clear()
        for candidates in self._specializations.values():
            for specialization in candidates:
                specialization.links, specialization.trials = {}, {}
