"""Divided functions: Python runs the statements that cannot be compiled, compiled parts run those between them.

A function is divided where its trace ended, at the first call that has no code. Its parts are compiled functions: one
whose trace ends as well is divided in turn. The first calls of a part time it beside its statements in Python, which
stay in the function where they are faster; then the whole is timed beside the plain function. Arrays of another size
class are timed again.
"""

import inspect
import types
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.compiler.capture.graph_breaks.break_sites import BreakSites, lines_named
from jitkernels.compiler.capture.graph_breaks.divided_code import (
    UNBOUND_VALUE,
    DividedFunction,
    closed_function_of,
    divide,
    function_of,
    lines_of_code,
)
from jitkernels.compiler.capture.graph_breaks.opaque_values import callees_named, opaque_names
from jitkernels.compiler.capture.graph_breaks.part import UNBOUND, Part
from jitkernels.compiler.capture.graph_breaks.statements import Key
from jitkernels.compiler.diagnostics.explain_breaks import DividedExplanation, GraphBreak, PartExplanation
from jitkernels.compiler.dispatch.python_call_stats import Timings
from jitkernels.core import settings
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import BuildError

MAX_SITES = 64
"""Break sites of one function, after which it falls back whole."""
MAX_REASONS = 256
"""Reasons that are looked at: texts of errors may differ in each call."""
WARM_UP = 2
"""Calls of a part that are not timed: they compile and link it."""
BITS_OF_CLASS = 3
"""A size class covers arrays of up to so many powers of two."""
CALLS_OF_PARTS = 9
"""Calls of a function in which its parts are timed, before the whole is."""
MIN_SCALAR_WEIGHT = 16
"""Operations on numbers from which on a call of code takes less time than Python."""
SECONDS_OF_CALL = 80e-9
"""What a call of a Python function takes, which statements that stay in the function save."""


class PartCall:
    """A part while its calls are timed: code and Python in turn, until the faster one is chosen."""

    def __init__(
        self, part: Part, compiled: Any, plain: Callable[..., Any], choose: Callable[[Part, bool], None]
    ) -> None:
        self.part, self.compiled, self.plain, self._choose = part, compiled, plain, choose
        self._timings, self._count = Timings(), 0

    def __call__(self, *args: Any) -> Any:
        is_plain = self._timings.prefers_plain(has_loops=self.part.has_loops)
        began = perf_counter()
        result = (self.plain if is_plain else self.compiled)(*args)
        seconds = perf_counter() - began
        self._count += 1
        has_no_code = self._count > WARM_UP and not self.compiled.runs_code()
        if has_no_code or (self.part.weight < MIN_SCALAR_WEIGHT and _are_scalars(args, result)):
            self._choose(self.part, False)
        elif self._count > WARM_UP:
            self._timings.note(seconds + (0.0 if is_plain else SECONDS_OF_CALL), is_plain=is_plain)
            if self._timings.is_settled or not self._timings.prefers_plain(has_loops=self.part.has_loops):
                self._settle()
        return result

    def _settle(self) -> None:
        """Choose, once both were timed or code takes so long that Python's share does not matter."""
        timings = self._timings
        if timings.is_settled:
            self._choose(self.part, min(timings.compiled) <= min(timings.plain))
        elif len(timings.plain) == len(timings.compiled):
            return
        else:
            self._choose(self.part, True)


class Division:
    """The divided function for arguments of one size class: `function`, whose code changes as parts are chosen.

    `serving` is that, or the plain function where it takes less time; None while calls are timed. `slower`: how much.
    """

    def __init__(self, breaks: "GraphBreaks", most: int) -> None:
        self.breaks, self.most, self.sites = breaks, most, breaks.sites
        self.inlined: set[Key] = set()
        self.cells = {UNBOUND: types.CellType(UNBOUND_VALUE)}
        divided = breaks.divided
        assert divided is not None, "it has parts"
        times = settings.read("JITKERNELS_POLICY") != "reproducible"
        for part in divided.parts:
            compiled, plain = breaks.parts[part.identity]
            call = PartCall(part, compiled, plain, self._choose) if times else compiled
            self.cells[part.name] = types.CellType(call)
        plain_function = breaks.plain
        self.function = closed_function_of(divided.tree, plain_function, self.cells)
        self.function.__defaults__ = plain_function.__defaults__
        self.function.__kwdefaults__ = plain_function.__kwdefaults__
        self.serving: types.FunctionType | None = None if times else self.function
        self.slower = ""
        self._has_loops = any(part.has_loops for part in divided.parts)
        self._timings, self._count = Timings(), 0

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Serve a call by the divided function or the plain one, and time it, also where it raises an exception."""
        self._count += 1
        is_plain = self._timings.prefers_plain(has_loops=self._has_loops)
        began = perf_counter()
        try:
            return (self.breaks.plain if is_plain else self.function)(*args, **kwargs)
        finally:
            if self._count > CALLS_OF_PARTS:
                self._timings.note(perf_counter() - began, is_plain=is_plain)
                is_divided = self._timings.chooses_code(has_loops=self._has_loops)
                if is_divided is False:
                    plain, divided = min(self._timings.plain) * 1e6, min(self._timings.compiled) * 1e6
                    self.slower = f"{plain:.3g} us, with compiled parts {divided:.3g} us"
                if is_divided is not None:
                    self.serving = self.function if is_divided else self.breaks.plain

    def _choose(self, part: Part, is_compiled: bool) -> None:
        """Call a part without timing it from now on, or leave its statements in the function."""
        compiled, plain = self.breaks.parts[part.identity]
        self.cells[part.name].cell_contents = compiled if is_compiled else plain
        if is_compiled:
            return
        with build_lock:
            self.inlined.add(part.key)
            divided = divide(self.breaks.plain, self.sites, self.inlined)
            self.function.__code__ = closed_function_of(divided.tree, self.breaks.plain, self.cells).__code__


class GraphBreaks:
    """The graph breaks of one function.

    `compiled`: makes a compiled function of a part's plain and traced one. `reasons`: of each line or name that breaks.
    """

    def __init__(self, plain: types.FunctionType, compiled: Callable[[Any, Any], Any]) -> None:
        self.plain, self._compiled = plain, compiled
        self.sites = BreakSites()
        self.reasons: dict[int | str, str] = {}
        self.divided: DividedFunction | None = None
        self.parts: dict[Any, tuple[Any, Any]] = {}
        self.refused = ""
        self._known: set[str] = set()
        self._divisions: dict[int, Division] = {}

    @property
    def has_parts(self) -> bool:
        """Whether there is anything to compile."""
        return self.divided is not None and bool(self.divided.parts)

    def renewed(self) -> "GraphBreaks":
        """The same without any break so far."""
        return GraphBreaks(self.plain, self._compiled)

    def division(self, reason: str, line: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Division | None:
        """The divided function for a call that has no code for some reason; None where all of it stays Python."""
        if reason not in self._known and len(self._known) < MAX_REASONS:
            with build_lock:
                self._extend(reason, line, args, kwargs)
                self._known.add(reason)
        if not self.has_parts:
            return None
        size_class = _size_class((*args, *kwargs.values()))
        division = self._divisions.get(size_class)
        if division is None:
            with build_lock:
                division = self._divisions.setdefault(size_class, Division(self, _most_of(size_class)))
        return division

    def _extend(self, reason: str, line: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Divide the function where a trace ended too, unless that is known, or cannot be."""
        inside = lines_of_code(self.plain.__code__)
        lines = frozenset(lines_named(reason, self.plain.__code__.co_filename) & inside)
        lines = lines or frozenset({line} if line else ())
        names: frozenset[str] = frozenset()
        if lines <= self.sites.lines:
            opaque = opaque_names(self.plain, self._arguments(args, kwargs))
            names = (opaque | (frozenset() if lines else callees_named(self.plain, reason))) - self.sites.names
        if self.refused or (lines <= self.sites.lines and not names):
            return
        self.reasons |= dict.fromkeys((*(lines - self.sites.lines), *names), reason)
        self.sites = BreakSites(self.sites.lines | lines, self.sites.names | names)
        if len(self.reasons) > MAX_SITES:
            self.refused, self.divided = f"it breaks more than {MAX_SITES} times", None
            return
        try:
            self.divided = divide(self.plain, self.sites, frozenset())
        except BuildError as error:
            self.refused, self.divided = str(error), None
            return
        self._divisions = {}
        cells = {UNBOUND: types.CellType(UNBOUND_VALUE)}
        for part in self.divided.parts:
            if part.identity not in self.parts:
                plain = function_of(part.plain, self.plain, cells)
                traced = plain if part.plain is part.traced else function_of(part.traced, self.plain, cells)
                self.parts[part.identity] = self._compiled(plain, traced), plain

    def _arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return inspect.signature(self.plain).bind(*args, **kwargs).arguments
        except TypeError:
            return {}

    def explanation(self) -> DividedExplanation:
        """The breaks and parts, as `explain` shows them."""
        if self.divided is None or not self.has_parts:
            return DividedExplanation()
        inlined = next(reversed(self._divisions.values())).inlined if self._divisions else frozenset[Key]()
        parts = [
            PartExplanation(*part.lines, part.loop, part.key in inlined, self.parts[part.identity][0].explain_all())
            for part in self.divided.parts
        ]
        slower = next(reversed(self._divisions.values())).slower if self._divisions else ""
        breaks = [GraphBreak(line, self._reason(line), loop) for line, loop in self.divided.broken.items()]
        return DividedExplanation(tuple(breaks), tuple(parts), slower)

    def _reason(self, line: int) -> str:
        """Why the statement that begins in a line breaks: what the trace that ended in it says, or what it uses."""
        names = sorted(self.sites.names)
        behind = sorted(other for other in self.reasons if type(other) is int and other > line)
        found = [line, *names[:1], *behind[:1]]  # the trace may have ended in a later line of the statement
        return next((self.reasons[key] for key in found if key in self.reasons), "compiled code cannot do that")


def _are_scalars(args: tuple[Any, ...], result: Any) -> bool:
    """Whether a part computes numbers from numbers."""
    results = result if type(result) is tuple else (result,)
    return all(isinstance(value, int | float | np.generic | str | types.NoneType) for value in (*args, *results))


def _size_class(values: tuple[Any, ...]) -> int:
    """The size class of arguments: that of the largest array."""
    largest = max((value.size for value in values if type(value) is np.ndarray), default=0)
    return -(-largest.bit_length() // BITS_OF_CLASS)


def _most_of(size_class: int) -> int:
    """The most elements of an array in a size class."""
    return int(2 ** (size_class * BITS_OF_CLASS)) - 1
