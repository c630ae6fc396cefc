"""Calls that time compiled code and the plain function in turn, and link the faster one for later calls."""

from typing import Any

from jitkernels.compiler.api import out_argument
from jitkernels.compiler.api.graph_breaks import Division
from jitkernels.compiler.capture.pytree.call_signature import FlatCall
from jitkernels.compiler.dispatch import python_call_stats
from jitkernels.compiler.dispatch.compiled_link import CompiledLink
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.dispatch.trial import LinkTrial
from jitkernels.core import settings
from jitkernels.core.fork_locks import build_lock

DIVIDED = "graph breaks: Python calls compiled parts of the function"


class TimedCalls:
    """The part of `ColdCalls` that compares compiled code with the plain function."""

    def _run_divided(
        self: Any, divided: Division, specialization: Specialization | None, args: Any, kwargs: Any, out: Any
    ) -> Any:
        """Run a function that breaks, and link it for calls of this form, unless others may have code of their own.

        The first calls time the divided function and the plain one in turn, but for a part, which others time.
        """
        self._entries.note(DIVIDED)
        if divided.serving is None and not self.is_part and out is None:
            return divided.run(args, kwargs)
        function = divided.serving or divided.function
        if (
            not self._has_code()
            or specialization is None
            or specialization.always_falls_back([*self._specializations.values()])
        ):
            self._links.enter_plain(function, args, kwargs, out, divided.most)
        return out_argument.copied_to(out, function(*args, **kwargs))

    def _may_compare(self: Any) -> bool:
        """Whether the plain function may serve calls because it is faster."""
        may_be_plain = self._is_plain and not (self.is_interpreter or self.is_part or self.config.strict)
        return may_be_plain and settings.read("JITKERNELS_POLICY") != "reproducible"

    def _may_assume(self: Any) -> bool:
        """Whether the first call may decide of which side of a branch there is code: not where bits must not."""
        is_plain = self._is_plain and not self.config.strict
        return is_plain and settings.read("JITKERNELS_POLICY") != "reproducible"

    def _trial(self: Any, specialization: Specialization, link: CompiledLink, *, repeats: bool = False) -> LinkTrial:
        return LinkTrial(
            link, self._refused, self.__wrapped__, takes_out=self._takes_out, has_loops=specialization.has_flows,
            repeats=repeats,
        )  # fmt: skip

    def _refused(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Serve a call that a link on trial refuses by the plain function."""
        out = None if self._takes_out else kwargs.pop("out", None)
        return self._plain(args, kwargs, out)

    def _bails_out(self: Any, specialization: Specialization, call: FlatCall) -> bool:
        """Whether code that was linked bails out of many calls: it is compared with the plain function again."""
        link = specialization.links.get(call.form)
        if link is None or not link.has_many_bailouts or call.form in specialization.trials:
            return False
        link.forget_bailouts()
        if not self._may_compare():
            return False
        with build_lock:
            self._unlink()
            specialization.links[call.form] = link
            specialization.trials[call.form] = self._trial(specialization, link, repeats=True)
        return True

    def _compare(self: Any, specialization: Specialization, call: FlatCall, args: Any, kwargs: Any, out: Any) -> Any:
        """Serve a call by compiled code or the plain function, and link the one that is known to be faster."""
        self._entries.note(python_call_stats.COMPARED)
        trial = specialization.trials[call.form]
        if out is not None:
            return trial.compiled(*args, **kwargs, out=out)
        try:
            return trial.run(args, kwargs, call.leaves)
        finally:
            with build_lock:  # another thread may have decided meanwhile
                self._settle(specialization, call, trial, args, kwargs)

    def _settle(
        self: Any, specialization: Specialization, call: FlatCall, trial: LinkTrial, args: Any, kwargs: Any
    ) -> None:
        """Link the compiled code or the plain function for calls like this one, if the trial has chosen."""
        is_profitable = trial.is_profitable(call.leaves)
        if is_profitable is None or specialization.trials.get(call.form) is not trial:
            return
        if is_profitable:
            del specialization.trials[call.form]
            specialization.entry_reason = ""
            self._links.enter(trial.release())
            return
        specialization.entry_reason = trial.reject(call.leaves)
        if trial.repeats:
            self._links.enter_limited(self.__wrapped__, args, kwargs, None)
        else:
            most = trial.most(call.leaves)
            self._links.enter_plain(self.__wrapped__, args, kwargs, None, most, specialization)
