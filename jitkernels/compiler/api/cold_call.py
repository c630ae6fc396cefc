"""The cold path of a call: Python runs the compiled code or the plain function, and links an entry for later calls.

Calls come here if no compiled entry accepted them, which costs 30 us and more: `PythonEntries` counts the reasons.
"""

from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.compiler.api import out_argument
from jitkernels.compiler.capture.pytree.result_spec import ResultInputs
from jitkernels.compiler.diagnostics.differential_check import Check
from jitkernels.compiler.dispatch import compiled_entry, dispatch_chain, python_entries
from jitkernels.compiler.dispatch.call_signature import Signature
from jitkernels.compiler.dispatch.object_guards import UnreachableError
from jitkernels.compiler.dispatch.specialization import Specialisation
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.core import settings, signal_exceptions
from jitkernels.core.fork_locks import making
from jitkernels.errors import DifferenceError, JitKernelsError, WorkspaceError
from jitkernels.runtime import errstate

MOST_FORMS = 16
"""Most call forms (numbers of positional arguments, keyword names) of one specialization that are linked."""


class PythonCalls:
    """The part of a compiled function that serves calls through Python."""

    config: JitConfig
    __wrapped__: Any
    _hits: int
    _links: dispatch_chain.Links
    _signature: Signature

    def _structure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        raise NotImplementedError

    def _ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _linked_function(self) -> Any:
        raise NotImplementedError

    def _names(self, args: Any, kwargs: Any) -> list[str]:
        raise NotImplementedError

    def _unlink(self) -> None:
        raise NotImplementedError

    def _sooner(
        self, began: float, specialization: Specialisation, leaves: Any, values: Any, args: Any, kwargs: Any, out: Any
    ) -> Any:
        """Run the compiled code, or the plain function where measurements show it is faster.

        Not for arrays of other libraries, for which the plain function may return other types.
        """
        timings = specialization.timings.setdefault(python_entries.size_class(leaves), python_entries.Timings())
        may_be_plain = not specialization.has_foreign and not self._is_reproducible()
        is_plain = may_be_plain and timings.prefers_plain(has_loops=specialization.has_flows)
        if is_plain:
            if timings.is_settled:
                self._links.enter_limited(self.__wrapped__, args, kwargs, out)
            began = perf_counter()
            result = self._plain(args, kwargs, out)
        else:
            result = self._computed(specialization, leaves, values, args, kwargs, out)
        if self._hits > 1:
            timings.note(perf_counter() - began, is_plain=is_plain)
        return result

    def _is_reproducible(self) -> bool:
        return settings.read("JITKERNELS_POLICY") == "reproducible"

    def _computed(
        self, specialization: Specialisation, leaves: Any, values: Any, args: Any, kwargs: Any, out: Any
    ) -> Any:
        """Run the compiled code from Python, and report its floating-point errors."""
        flags = errstate.Heard()
        is_checked = self.config.is_checked
        before = [leaves[i].copy() for i in specialization.written] if specialization.may_raise or is_checked else ()
        arrays = None
        try:
            check = Check(specialization, leaves, values) if is_checked else None
            with np.errstate(all="ignore") if specialization.alarm is None else flags.listening():
                arrays = specialization.run(leaves, values)
            if check is not None:
                check.compare(arrays, leaves, lambda: self._names(args, kwargs))
        except Exception as error:  # the plain function raises it again, on restored arguments
            for i, array in zip(specialization.written, before, strict=False):
                leaves[i][...] = array
            if isinstance(error, DifferenceError | WorkspaceError) or signal_exceptions.raised_by_signal_handler(error):
                raise  # the plain function cannot do better, or the error came amid writes
            if isinstance(error, JitKernelsError):
                specialization.note_failure(error)
        if arrays is None:  # outside the handler, so that our error is no __context__ of the function's
            return self._plain(args, kwargs, out)
        specialization.tell(flags.kinds, args, kwargs)
        result = specialization.plan.make(ResultInputs(leaves, arrays, values))
        return result if out is None else out_argument.given_to(out, result)

    def _link(self, found: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Link a compiled entry for calls of this form; whether there is one now."""
        form, function = (len(args), tuple(kwargs)), self._linked_function()
        if form in found.direct or len(found.direct) >= MOST_FORMS:
            return False
        with making:
            if form in found.direct:
                return False
            if self._links.are_many:
                self._unlink()
            found.direct[form] = None
            found.entry_reason = self._why_python()
            if found.entry_reason:
                return False
            taken = *self._structure(args, kwargs), self._ordered(args, kwargs)
            try:
                call, entry = compiled_entry.of_call(function, found, taken, self._signature, args, kwargs)
                made = compiled_entry.Direct(entry, call, found.alarm, cached=self.config.cache)
                self._links.enter(made)
                found.direct[form] = made
            except UnreachableError as error:
                found.entry_reason = str(error)
            except JitKernelsError as error:
                found.note_failure(error)
                found.entry_reason = f"the compiler failed: {error}"
            return found.direct[form] is not None

    def _why_python(self) -> str:
        """Why all calls enter through Python; empty if they need not."""
        if dispatch_chain.base is None:
            return "a Python or NumPy whose objects compiled code cannot read"
        return "calls are checked or timed, as the config asks" if self.config.requires_python_calls else ""

    def _why_not_entered(self, specialization: Specialisation, args: Any, kwargs: Any) -> str:
        """Why calls of this form enter through Python; empty if an entry accepts them."""
        unpacked = *self._structure(args, kwargs), self._ordered(args, kwargs)
        try:
            compiled_entry.of_call(self._linked_function(), specialization, unpacked, self._signature, args, kwargs)
        except JitKernelsError as error:
            return f"the compiler failed: {error}"
        except UnreachableError as error:
            return str(error)
        return ""

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        result = self.__wrapped__(*args, **kwargs)
        return result if out is None else out_argument.given_to(out, result)
