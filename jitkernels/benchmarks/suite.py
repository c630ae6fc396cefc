"""What a benchmark is: a name, a function that gives lines, and a verdict over them.

`jitkernels bench` runs the table of kernels unless it is given the name of another one; all are registered by the
decorator here, ours by the modules of `jitkernels.benchmark.entries`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import RegistrationError
from jitkernels.tuning.timer import Timing


@dataclass(frozen=True)
class Settings:
    """What a run was asked for: rows, the tag of their sweeps, seconds for timing each line, threads, peers.

    `parts`: of what a benchmark consists of, see `Benchmark`, what is asked for; all of it where nothing is named.
    """

    rows: Sequence[type[KernelAttr]]
    tag: str
    seconds: float
    threads: int
    peers: bool
    parts: Sequence[str] = ()


@dataclass(frozen=True)
class Line:
    """One line of a table: what was timed side by side.

    `pick` names the timing that users get, `rivals` those that could have been it. `figures` are numbers that
    are no times, such as bytes.
    """

    group: str
    case: str
    timings: Mapping[str, Timing]
    pick: str = ""
    rivals: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""

    @property
    def regret(self) -> float | None:
        """How much slower the pick is than the fastest of its rivals, as users see them: 0.1 for ten percent."""
        if not self.rivals:
            return None
        return self.timings[self.pick].used / min(self.timings[name].used for name in self.rivals) - 1

    @property
    def best_other(self) -> str:
        """The name of the fastest that is not the pick; "" where there is none."""
        others = {name: timing.seconds for name, timing in self.timings.items() if name != self.pick}
        return min(others, key=lambda name: others[name], default="")

    def speed_over(self, name: str) -> float | None:
        """How many times faster than another timing the pick is, threads of both awake."""
        if name not in self.timings or self.pick not in self.timings:
            return None
        return self.timings[name].seconds / self.timings[self.pick].seconds


@dataclass(frozen=True)
class Verdict:
    """The figure that a benchmark is run for, and whether it is what was promised (None: nothing was)."""

    text: str
    holds: bool | None = None


@dataclass(frozen=True)
class Benchmark:
    """One entry of the suite. `against` names the timing that the pick is compared with in its tables.

    `parts`: the names that it may be asked for, of one that is not about kernels.
    """

    name: str
    summary: str
    run: Callable[[Settings], Iterable[Line]]
    verdict: Callable[[Sequence[Line]], Verdict]
    against: str
    parts: Callable[[], Collection[str]] | None = None


_known: dict[str, Benchmark] = {}
Run = Callable[[Settings], Iterable[Line]]


def benchmark(
    name: str,
    *,
    verdict: Callable[[Sequence[Line]], Verdict],
    against: str = "",
    parts: Callable[[], Collection[str]] | None = None,
) -> Callable[[Run], Run]:
    """Register the decorated function; the first line of its docstring says what it measures.

    Raises RegistrationError if there is another benchmark of that name, or no docstring.
    """

    def register(function: Run) -> Run:
        summary = (function.__doc__ or "").strip().split("\n")[0]
        if not summary:
            raise RegistrationError(f"benchmark {name!r}: its function has no docstring")
        if name in _known and _known[name].run.__code__ is not function.__code__:
            raise RegistrationError(f"there already is a benchmark {name!r}")
        _known[name] = Benchmark(name, summary, function, verdict, against, parts)
        return function

    return register


def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by name."""
    from jitkernels.benchmark import entries

    for found in pkgutil.iter_modules(entries.__path__):
        importlib.import_module(f"{entries.__name__}.{found.name}")
    return dict(_known)
