"""Registration of programs of science: their spellings, inputs and the sizes at which tests compare them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels.errors import RegistrationError

Inputs = Callable[[int, Any], tuple[Any, ...]]
"""Returns the arguments for a size and a dtype: new arrays with the same values each time."""


@dataclass(frozen=True)
class ScienceProgram:
    """Functions of the same arguments with the same results, by spelling.

    The first spelling is what NumPy's users write, the baseline; "loops" is what numba's users write. `size` is that of
    the benchmark, `sizes` those of tests. `rtol`, relative to the largest value of a result, bounds how far spellings
    may differ in float64: they sum in different orders.
    """

    name: str
    spellings: dict[str, Callable[..., Any]]
    inputs: Inputs
    size: int
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    rtol: float

    @property
    def baseline(self) -> Callable[..., Any]:
        return next(iter(self.spellings.values()))


known: dict[str, ScienceProgram] = {}


def science_program(
    inputs: Inputs,
    *spellings: Callable[..., Any],
    size: int,
    sizes: tuple[int, ...] = (5, 12),
    dtypes: tuple[str, ...] = ("float64",),
    rtol: float = 1e-9,
) -> None:
    """Register a program; its functions are called `<program>_<spelling>`.

    Raises RegistrationError if there is another program of that name, or the names of the functions do not agree.
    """
    names = [function.__name__.rpartition("_") for function in spellings]
    name = names[0][0]
    if {prefix for prefix, _, _ in names} != {name}:
        raise RegistrationError(f"spellings of several programs: {[function.__name__ for function in spellings]}")
    if name in known and known[name].baseline.__code__ != spellings[0].__code__:
        raise RegistrationError(f"there already is a program {name!r}")
    labelled = {spelling: function for (_, _, spelling), function in zip(names, spellings, strict=True)}
    known[name] = ScienceProgram(name, labelled, inputs, size, sizes, dtypes, rtol)


def uniform(*shape: int, dtype: Any = np.float64, seed: int = 0) -> Any:
    """Return random numbers of [0, 1), the same for the same shape and seed."""
    return np.random.default_rng([seed, *shape]).random(shape).astype(dtype)


def results_of(result: Any) -> tuple[Any, ...]:
    """Return the arrays of a result."""
    return tuple(map(np.asarray, result)) if isinstance(result, tuple | list) else (np.asarray(result),)


def difference_of(result: Any, expected: Any) -> float:
    """Return the largest error, relative to the largest expected value of each array; inf if shapes differ."""
    worst = 0.0
    found, wanted = results_of(result), results_of(expected)
    if [one.shape for one in found] != [one.shape for one in wanted]:
        return np.inf
    for one, right in zip(found, wanted, strict=True):
        if right.dtype == np.bool_:
            worst = max(worst, float(np.mean(one != right)) if right.size else 0.0)
            continue
        if not np.array_equal(np.isfinite(one), np.isfinite(right)):
            return np.inf
        if right.size:
            finite = np.isfinite(right)
            scale = np.abs(right[finite]).max(initial=0.0) or 1.0
            worst = max(worst, float((np.abs(one[finite] - right[finite]) / scale).max(initial=0.0)))
    return worst


def random_graph(n: int, degree: int) -> Any:
    """Return indptr, indices and weights of an undirected graph, rows in order."""
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, n, (2, n * degree // 2))
    a, b = a[a != b], b[a != b]
    weights = np.full((n, n), np.inf)
    weights[a, b] = weights[b, a] = np.minimum(rng.random(len(a)), 1.0)
    weights = np.minimum(weights, weights.T)
    source, target = np.nonzero(np.isfinite(weights))
    return np.searchsorted(source, np.arange(n + 1)), target, weights[source, target]


def edges(n: int, degree: int) -> Any:
    """Return source, target and weight of each edge of such a graph."""
    indptr, indices, weights = random_graph(n, degree)
    return np.repeat(np.arange(n), np.diff(indptr)), indices, weights
