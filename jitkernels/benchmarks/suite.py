"""The benchmark registry: a name, a function that yields lines, and a verdict over them.

`jitkernels bench` runs the table of kernels unless the first argument names another benchmark; all are registered by
the decorator here, those of the package by the modules of `jitkernels.benchmarks.entries`.
"""

import importlib
import itertools
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.errors import RegistrationError
from jitkernels.tuning.timer import Timing

Item = TypeVar("Item")
TINY_TAG = "tiny"
"""The tag of a smoke test: each benchmark does the minimum of work, and figures are meaningless."""


@dataclass(frozen=True)
class Settings:
    """The settings of a run: schemas, the tag of their sweeps, seconds for timing each line, threads, peers.

    `parts`: the requested parts of a benchmark, see `Benchmark`; all of it if empty. `batch`: images of a call, of the
    benchmarks that have some.
    """

    schemas: Sequence[type[KernelAttr]]
    tag: str
    seconds: float
    threads: int
    peers: bool
    parts: Sequence[str] = ()
    batch: int = 1

    @property
    def is_tiny(self) -> bool:
        return self.tag == TINY_TAG

    def limited(self, items: Iterable[Item], most: int = 1) -> list[Item]:
        """Return the first `most` items if the run is tiny, else all of them."""
        return list(itertools.islice(items, most if self.is_tiny else None))

    def some_of(self, names: Iterable[str]) -> Sequence[str]:
        """Return the requested parts of a benchmark; else all, or only the first for a tiny run."""
        return self.parts or self.limited(names)


@dataclass(frozen=True)
class Line:
    """One line of a table: timings of the same work.

    `pick` names the timing of the selection, `rivals` its alternatives. `figures` are numbers other than times, such as
    bytes.
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
        """Return how much slower the selection is than the fastest of its rivals, for users: 0.1 means ten percent."""
        if not self.rivals:
            return None
        return self.timings[self.pick].used / min(self.timings[name].used for name in self.rivals) - 1

    @property
    def best_other(self) -> str:
        """Return the name of the fastest timing other than the selection; "" if there is none."""
        others = {name: timing.seconds for name, timing in self.timings.items() if name != self.pick}
        return min(others, key=lambda name: others[name], default="")

    def speed_over(self, name: str) -> float | None:
        """Return the speedup of the selection over another timing, with the threads of both awake."""
        if name not in self.timings or self.pick not in self.timings:
            return None
        return self.timings[name].seconds / self.timings[self.pick].seconds


@dataclass(frozen=True)
class Verdict:
    """The figure of merit of a benchmark, and whether it keeps its promise (None: no promise)."""

    text: str
    holds: bool | None = None


@dataclass(frozen=True)
class Benchmark:
    """One entry of the suite. `against` names the baseline of the selection in its tables.

    `parts`: the selectable parts of a benchmark that is not about kernels.
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
    from jitkernels.benchmarks import entries

    for module in pkgutil.iter_modules(entries.__path__):
        importlib.import_module(f"{entries.__name__}.{module.name}")
    return dict(_known)
