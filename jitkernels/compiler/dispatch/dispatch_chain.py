"""The links of a compiled function: what its calls look through before they come to Python."""

from typing import Any

from jitkernels.frontends import direct
from jitkernels.frontends.specialisation import MANY_ELEMENTS, Specialisation
from jitkernels.locks import making
from jitkernels.native import call_table, vectorcall

MOST_LINKS, MOST_CHOICES = 4096, 64
"""Links; and those to the plain function that ask what is chosen: later ones of the same types take anything."""
base = vectorcall.base()
"""The type of what can have links; None where Python serves all calls."""


class Links:
    """A table and its links, which are entered and taken out with `making` held."""

    def __init__(self, target: Any, slow: Any, plain: Any, *, takes_out: bool) -> None:
        """`slow` serves the calls of `target` that no link takes, `plain` what links refuse, unless it is None.

        `takes_out`: it has an argument of that name.
        """
        self.entered: list[Any] = []
        self._old: list[Any] = []
        self._served = slow, plain
        self._plain: dict[Any, int] = {}
        if base is not None:
            self._table = call_table.new_table(slow, plain, takes_out=takes_out)
            vectorcall.attach(target, self._table)

    @property
    def are_many(self) -> bool:
        return len(self.entered) >= MOST_LINKS

    def enter(self, link: Any) -> None:
        """Let calls look at a link, and let go of those that were taken out."""
        self._forget()
        self.entered.append(link)
        call_table.enter(self._table, link.link)

    def enter_plain(
        self, function: Any, args: Any, kwargs: Any, out: Any, most: int, found: Specialisation | None = None
    ) -> None:
        """Let calls like one be the plain function's without more ado, up to so many elements of an array."""
        if base is None or out is not None or self.are_many or not direct.has_plain_links():
            return
        kinds = [type(one) for one in (*args, *kwargs.values())]
        if most != MANY_ELEMENTS and not direct.NUMBERS.issuperset(kinds):
            return
        form = (tuple(kinds), tuple(kwargs))
        with making:
            count = self._plain[form] = self._plain.get(form, 0) + 1
            choices = direct.CHOICES if found is None or not found.value_guards else (*direct.CHOICES, int)
            same = choices if count <= MOST_CHOICES else ()
            self.enter(direct.Plain(function, args, kwargs, most, same))

    def clear(self) -> None:
        """Take all out. They live on while calls are under way."""
        if base is not None:
            call_table.clear(self._table)
            self._old += self.entered
            self.entered, self._plain = [], {}
            self._forget()

    def _forget(self) -> None:
        """Let go of links that were taken out, and of their code, if no call can be in it."""
        if self._old and call_table.is_quiet(self._table):
            self._old.clear()
