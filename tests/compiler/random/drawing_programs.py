# ruff: noqa: NPY002
"""Functions that draw random numbers in many spellings, to compare compiled with plain Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import default_rng, rand

GENERATOR = np.random.default_rng(3)
DRAW = GENERATOR.random
PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, arguments))
        return function

    return enter


@program(700)
def continuous_distributions(n: int) -> Any:
    g = GENERATOR
    return (
        g.laplace(1.5, 2.0, n), g.laplace(), g.lognormal(0.3, 1.2, n), g.lognormal(), g.gamma(2.5, 3.0, n),
        g.standard_gamma(1.0, n), g.chisquare(5, n), g.chisquare(2), g.standard_t(3, n),
        g.noncentral_chisquare(4.5, 2.0, n),
    )  # fmt: skip


@program(700)
def poisson(n: int) -> Any:
    return GENERATOR.poisson(3.2, n), GENERATOR.poisson(10, n), GENERATOR.poisson(123.4, (n, 2)), GENERATOR.poisson()


@program(700)
def legacy_distributions(n: int) -> Any:
    np.random.seed(5)
    total = 0.0
    for i in range(n):
        total += np.random.laplace(i, 2.0) + np.random.lognormal(0.1, 0.2) + np.random.gamma(1 + i % 7, 2.0)
        total += np.random.chisquare(3 + i) * np.random.standard_t(4) - np.random.poisson(i * 0.1 + 0.5)
    return total, np.random.poisson(77.7, n), np.random.noncentral_chisquare(3, 0.5, n), np.random.chisquare(2, n)


@program(500)
def of_a_global(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        total += GENERATOR.random()
    return total


@program(500)
def by_a_bound_method(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        total += DRAW()
    return total


@program(7, 300)
def of_a_seed(seed: int, n: int) -> Any:
    own = np.random.default_rng(seed)
    total = 0.0
    for _ in range(n):
        total += own.normal(1, 2)
    return total, seed


@program(300)
def of_a_constant_seed(n: int) -> Any:
    return default_rng(42).standard_normal(n), np.random.Generator(np.random.PCG64(1)).random(3)


@program(300)
def of_a_twister(n: int) -> Any:
    own = np.random.Generator(np.random.MT19937(8))
    return own.random(n), own.integers(0, 1000, n), own.standard_exponential(n)


@program(4)
def of_seeds_in_a_loop(n: int) -> Any:
    total = 0.0
    for i in range(9 * n):
        own = np.random.default_rng(i)
        total += own.random() + own.uniform(2, 5)
    return total


@program(300)
def legacy(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        total += np.random.rand() + np.random.random() * np.random.uniform(-1, 2)
    return total


@program(300)
def legacy_integers(n: int) -> Any:
    total: Any = 0
    for _ in range(n):
        total += np.random.randint(0, 7) * np.random.randint(100)
    return total


@program(301)
def legacy_normal(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        total += np.random.randn() * np.random.normal(1.0, 2.0) + np.random.standard_normal()
    return total, np.random.randn(3), np.random.normal(size=(2, 5)), np.random.rand()


@program(12, 40)
def legacy_seed(seed: int, n: int) -> Any:
    np.random.seed(seed)
    first = np.random.randn(5), np.random.rand()
    np.random.seed(2**32 - 1)
    total = 0.0
    for i in range(n):
        if i % 7 == 3:
            np.random.seed(i)
        total += np.random.rand() + np.random.randn()
    return first, total


@program(30)
def legacy_bad_seed(n: int) -> Any:
    total = 0.0
    for i in range(n):
        np.random.seed(20 - i)
        total += np.random.rand()
    return total


@program(np.arange(30.0))
def legacy_permutations(x: Any) -> Any:
    y = x.copy()
    np.random.shuffle(y)
    return y, np.random.permutation(20), np.random.permutation(x)


@program()
def legacy_normal_once() -> Any:
    return np.random.normal(0.1, 0.7)


@program(300)
def legacy_imported(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        total += rand()
    return total, np.random.rand(3, 4), np.random.exponential(2.0, 5), np.random.randint(0, 3, (2, 2))


@program(300)
def arrays(n: int) -> Any:
    own = GENERATOR
    drawn = own.random(n), own.normal(size=(n, 3)), own.uniform(1, 2, n), own.integers(0, 5, n)
    others = own.exponential(2.0, n), own.standard_exponential(n), own.standard_exponential(n, method="inv")
    return (*drawn, *others, own.random((2, 3, 4)))


@program()
def numbers() -> Any:
    own = GENERATOR
    return own.uniform(1.1, 2.7), own.normal(0.3, 1.7), own.exponential(3.3), own.integers(3, 9), own.random()


@program(np.linspace(0.1, 3, 40))
def of_parameters(x: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = GENERATOR.normal(x[i], x[i] / 3) + GENERATOR.exponential(x[i]) * GENERATOR.uniform(-x[i], x[i])
    return y


@program(300)
def integers(n: int) -> Any:
    total: Any = 0
    for i in range(1, n):
        total += GENERATOR.integers(0, i) + GENERATOR.integers(-5, 5, endpoint=True)
        total += GENERATOR.integers(0, 2**40) + GENERATOR.integers(2**33) + GENERATOR.integers(7, 8)
    return total, GENERATOR.integers(2**32), GENERATOR.integers(0, 2**32 + 1), GENERATOR.integers(-(2**63), 2**63)


@program(100)
def integer_dtypes(n: int) -> Any:
    own = GENERATOR
    return own.integers(0, 9, n, dtype=np.int32), own.integers(0, 2**32, n, np.uint32), own.integers(5, size=3), n


@program(np.arange(50.0))
def permutations(x: Any) -> Any:
    y = x.copy()
    GENERATOR.shuffle(y)
    return y, GENERATOR.permutation(20), GENERATOR.permutation(x)


@program(np.arange(50.0), 9)
def choices(x: Any, n: int) -> Any:
    return GENERATOR.choice(5), GENERATOR.choice(x), GENERATOR.choice(x, 10), GENERATOR.choice(n, size=(2, 3))


@program(2000)
def pi(n: int) -> Any:
    hits = 0
    for _ in range(n):
        x, y = GENERATOR.random(), GENERATOR.random()
        if x * x + y * y < 1:
            hits += 1
    return 4 * hits / n


@program(np.zeros((5, 5)), 400)
def branches(a: Any, n: int) -> Any:
    counts, others = a.copy(), 0
    for _ in range(n):
        row, column = GENERATOR.integers(0, 5), GENERATOR.integers(5)
        if GENERATOR.random() < 0.3:
            counts[row, column] += GENERATOR.normal()
        else:
            others += 1
    return counts, others


@program(30)
def walk_until(limit: int) -> Any:
    position, steps = 0.0, 0
    while abs(position) < limit:
        position += GENERATOR.standard_normal()
        steps += 1
    return position, steps


def _step(generator: Any, x: float) -> Any:
    """What another function draws."""
    return x + generator.normal() if generator.random() < 0.5 else x - GENERATOR.random()


@program(200)
def by_another_function(n: int) -> Any:
    x = 0.0
    for _ in range(n):
        x = _step(GENERATOR, x)
    return x


@program(200)
def in_comprehensions(n: int) -> Any:
    return [GENERATOR.random() for _ in range(n)], sum(GENERATOR.random() for _ in range(n))


@program(400)
def that_raises(n: int) -> Any:
    total = 0.0
    for i in range(n):
        total += GENERATOR.random()
        if i == 200:
            raise KeyError(i)
    return total


@program(3.0, 20)
def of_bad_parameters(scale: float, n: int) -> Any:
    total = 0.0
    for i in range(n):
        total += GENERATOR.normal(0.0, scale - i)
    return total


@program(100)
def of_empty_ranges(n: int) -> Any:
    total: Any = 0
    for i in range(n):
        total += GENERATOR.integers(i, 50)
    return total


@program(12, np.arange(8) * 1.5)
def legacy_choices(n: int, x: Any) -> Any:
    one, some = np.random.choice(n), np.random.choice(n, size=5)
    return one, some, np.random.choice(x), np.random.choice(x, size=4), np.random.choice(n, size=5, replace=False)


@program(np.arange(8) * 1.5, np.array([0.1, 0.2, 0.05, 0.15, 0.1, 0.1, 0.1, 0.2]))
def legacy_choices_by_probability(x: Any, p: Any) -> Any:
    total = 0.0
    for _ in range(50):
        total += np.random.choice(x, p=p)
    return total, np.random.choice(x, size=7, p=p), np.random.choice(8, p=p)


@program(7)
def legacy_seed_alone(seed: int) -> None:
    np.random.seed(seed)
