"""Random functions with unset variables and handlers: each raises or returns what Python does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_unset import Maker
from test_random_loops import alike
from written import function_of

import jitkernels as jk

COUNT = 8


def arguments(n: int, kind: int) -> tuple[Any, ...]:
    random = np.random.default_rng(n + kind)
    a, m = random.random(n), random.random((n, n))
    return (a, -a, a * 0)[kind], m - (kind == 1), n, (0.75, 0.2, 0.9)[kind]


def outcome(function: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        found = function(*given)
    except Exception as error:  # noqa: BLE001  # whatever it is
        return type(error).__name__, str(error), given[0], given[1]
    return *found, given[0], given[1]


@pytest.mark.parametrize("tries", [0.0, 0.15])
def test_random_unset(tries: float, tmp_path: Path) -> None:
    for seed in range(COUNT):
        text = Maker(seed, tries).text()
        function = function_of(text, f"random_unset_{seed}", tmp_path)
        compiled = jk.jit(function, opt_level=1)
        for n, kind in ((9, 0), (12, 1), (12, 2), (9, 2)):
            expected, found = (outcome(one, arguments(n, kind)) for one in (function, compiled))
            assert alike(found, expected), f"{text}\n{found}\n{expected}"
