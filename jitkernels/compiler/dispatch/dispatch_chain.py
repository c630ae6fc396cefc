"""The inline-cache chain of a compiled function: the links that a call tries before it enters Python."""

from typing import Any

import numpy as np

from jitkernels.compiler.dispatch.plain_link import CHOICES, NUMBERS, PlainLink, has_plain_links
from jitkernels.compiler.dispatch.specialization import MANY_ELEMENTS, Specialization
from jitkernels.core.fork_locks import build_lock
from jitkernels.runtime import inline_cache, python_fallback, vectorcall

MAX_LINKS, MAX_CHOICES = 4096, 64
"""Most links of a chain; most plain links of one form that guard choice values, later ones accept any value."""
CALLS_BETWEEN_LOOKS, MAX_CALLS_BETWEEN_LOOKS = 256, 4096
"""Calls of the plain function for arguments of unknown size before Python checks the sizes again; they double."""
base = vectorcall.base()
"""The base type of callables with a chain; None where Python serves all calls."""


class Links:
    """A table and its links. Callers hold the `build_lock` lock to add or remove links."""

    def __init__(self, target: Any, slow: Any, plain: Any, *, takes_out: bool) -> None:
        """`slow` serves calls of `target` that no link accepts, `plain` (if any) calls from which a link bails out.

        `takes_out`: the function itself has a parameter ``out``.
        """
        self.entered: list[Any] = []
        self._old: list[Any] = []
        self._fallbacks = slow, plain
        self._plain_counts: dict[Any, int] = {}
        self._limited: dict[Any, PlainLink] = {}
        if base is not None:
            self._table = inline_cache.new_table(slow, plain, takes_out=takes_out)
            vectorcall.attach(target, self._table)

    @property
    def are_many(self) -> bool:
        return len(self.entered) >= MAX_LINKS

    def enter(self, link: Any) -> None:
        """Insert a link at the front of the chain (one that stays last at its end), and free the removed ones."""
        self._forget()
        self.entered.append(link)
        inline_cache.enter(self._table, link.link)

    def enter_plain(
        self, function: Any, args: Any, kwargs: Any, out: Any, most: int, specialization: Specialization | None = None
    ) -> None:
        """Send calls of this form straight to the plain function, for arrays of at most `most` elements."""
        if base is None or out is not None or self.are_many or not has_plain_links():
            return
        kinds = [type(value) for value in (*args, *kwargs.values())]
        if most != MANY_ELEMENTS and not NUMBERS.issuperset(kinds):
            self.enter_limited(function, args, kwargs, out)
            return
        form = (tuple(kinds), tuple(kwargs))
        with build_lock:
            count = self._plain_counts[form] = self._plain_counts.get(form, 0) + 1
            choices = (*CHOICES, int) if specialization is not None and specialization.value_guards else CHOICES
            self.enter(PlainLink(function, args, kwargs, most, choices if count <= MAX_CHOICES else ()))

    def enter_limited(self, function: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Like `enter_plain`, for arguments of unknown size: Python checks them again after some calls."""
        if base is None or out is not None or self.are_many or not has_plain_links():
            return
        values = (*args, *kwargs.values())
        form = (tuple(kwargs), *((type(value), _pattern(value)) for value in values))
        with build_lock:
            existing = self._limited.get(form)
            if existing is not None:
                existing.calls = min(2 * existing.calls, MAX_CALLS_BETWEEN_LOOKS)
                existing.allow(existing.calls)
                return
            link = PlainLink(function, args, kwargs, MANY_ELEMENTS, (), CALLS_BETWEEN_LOOKS)
            self._limited[form] = link
            self.enter(link)

    def clear(self) -> None:
        """Remove all links. They stay alive while calls run in them."""
        if base is not None:
            inline_cache.clear(self._table)
            self._old += self.entered
            self.entered, self._plain_counts, self._limited = [], {}, {}
            self._forget()

    def _forget(self) -> None:
        """Free the removed links and their code, if no call can be inside."""
        if self._old and inline_cache.is_quiet(self._table):
            self._old.clear()


def _pattern(value: Any) -> Any:
    """The array properties that a plain link guards; None for other values."""
    return (value.dtype.num, value.ndim, value.flags.num & python_fallback.FLAGS) if type(value) is np.ndarray else None
