"""How far a long command has come and how long it will take, on a terminal or in lines of plain text."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from jitkernels.cli import output

APART = 10.0
"""Seconds between two lines where there is no terminal."""
TRUST = 2.0
"""A guess counts as much as what was seen of so many seconds of work."""


class Eta:
    """Seconds that are left of work of several kinds, guessed before, and corrected by how long each kind has taken."""

    def __init__(self, guesses: Mapping[str, float], clock: Callable[[], float] = monotonic) -> None:
        self._guessed = dict(guesses)
        self._done = dict.fromkeys(guesses, 0.0)
        self._took = dict.fromkeys(guesses, 0.0)
        self._clock = clock
        self._last = clock()

    def expect(self, kind: str, guess: float) -> None:
        """Guess anew, before work of a kind begins, how long it will take."""
        self._guessed[kind] = guess
        self._done[kind] = self._took[kind] = 0.0
        self._last = self._clock()

    def done(self, kind: str, guess: float) -> None:
        """Some work of a kind that was guessed to take so long has been done, since the last was."""
        now = self._clock()
        self._done[kind] += guess
        self._took[kind] += now - self._last
        self._last = now

    @property
    def left(self) -> float:
        """Seconds to come."""
        return sum(
            max(0.0, guess - self._done[kind]) * (self._took[kind] + TRUST) / (self._done[kind] + TRUST)
            for kind, guess in self._guessed.items()
        )

    @property
    def share(self) -> float:
        """What has been done of all the time that it takes."""
        taken = sum(self._took.values())
        return taken / max(taken + self.left, 1e-9)


def in_words(seconds: float) -> str:
    """Seconds as a user wants to know them: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


Say = Callable[[str], None]


@contextlib.contextmanager
def shown(eta: Eta) -> Iterator[Say]:
    """What to call with a word on what is being done: a bar on a terminal, else a line on stderr now and then."""
    target = output.console(stderr=True)
    columns = (BarColumn(), TextColumn("{task.description}", style="progress.remaining"))
    with (
        output.logged(target),
        Progress(*columns, console=target, transient=True, disable=not target.is_terminal) as bar,
    ):
        task = bar.add_task("", total=1.0)
        last = monotonic()

        def say(what: str) -> None:
            nonlocal last
            words = f"{eta.share:.0%}, about {in_words(eta.left)} left: {what}"
            bar.update(task, completed=eta.share, description=escape(words))
            if not target.is_terminal and monotonic() - last > APART:
                last = monotonic()
                target.print(escape(words), soft_wrap=True)

        yield say
