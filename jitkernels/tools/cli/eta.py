"""Progress and remaining time of a long command, on a terminal or as lines of plain text."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from jitkernels.tools.cli import output

SECONDS_BETWEEN_LINES = 10.0
"""Without a terminal."""
PRIOR_SECONDS = 2.0
"""Weight of an estimate, in seconds of measured work."""


class Eta:
    """Remaining seconds of several kinds of work: estimates, corrected by the measured duration of each kind."""

    def __init__(self, guesses: Mapping[str, float], clock: Callable[[], float] = monotonic) -> None:
        self._guessed = dict(guesses)
        self._done = dict.fromkeys(guesses, 0.0)
        self._took = dict.fromkeys(guesses, 0.0)
        self._clock = clock
        self._last = clock()

    def expect(self, kind: str, guess: float) -> None:
        """Set a new estimate of a kind of work before it begins."""
        self._guessed[kind] = guess
        self._done[kind] = self._took[kind] = 0.0
        self._last = self._clock()

    def done(self, kind: str, guess: float) -> None:
        """Record that work of a kind with this estimate has been done since the last call."""
        now = self._clock()
        self._done[kind] += guess
        self._took[kind] += now - self._last
        self._last = now

    @property
    def remaining(self) -> float:
        return sum(
            max(0.0, guess - self._done[kind]) * (self._took[kind] + PRIOR_SECONDS) / (self._done[kind] + PRIOR_SECONDS)
            for kind, guess in self._guessed.items()
        )

    @property
    def share(self) -> float:
        """Return the completed share of the total time."""
        elapsed = sum(self._took.values())
        return elapsed / max(elapsed + self.remaining, 1e-9)


def in_words(seconds: float) -> str:
    """Format seconds for a user: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


Say = Callable[[str], None]


@contextlib.contextmanager
def shown(eta: Eta) -> Iterator[Say]:
    """Yield a function that shows a message on the current work: a bar on a terminal, else lines on stderr."""
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
            words = f"{eta.share:.0%}, about {in_words(eta.remaining)} left: {what}"
            bar.update(task, completed=eta.share, description=escape(words))
            if not target.is_terminal and monotonic() - last > SECONDS_BETWEEN_LINES:
                last = monotonic()
                target.print(escape(words), soft_wrap=True)

        yield say
