"""Arguments that are written before a loop that may bail out: the entry serves such calls, and writes at the end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch.compiled_link import CompiledLink


def before(e: Any, x: Any, k: Any) -> Any:
    e[:2] = x[:2]
    total = 0.0
    for i in k:
        total += x[i]
    return total


def before_and_after(e: Any, x: Any, k: Any) -> Any:
    e += x
    total = 0.0
    for i in k:
        total += x[i] + e[0]
    e[1:] *= 2
    return total


def read_after(e: Any, x: Any, k: Any) -> Any:
    e[0] = 3.0
    e[1:] = 1.0
    count = 0
    for i in k:
        if x[i] > 1:
            x[count] = x[i]
            count += 1
    return count, (e * x).sum()


def whole(e: Any, x: Any, k: Any) -> Any:
    e[...] = 2 * x
    total = 0.0
    for i in k:
        total += x[i]
    e[k[0]] = total
    return None


@pytest.mark.parametrize("program", [before, before_and_after, read_after, whole], ids=lambda one: one.__name__)
def test_updates(program: Callable[..., Any]) -> None:
    compiled, plain = jk.jit(program), program
    for k in ([1, 2, 3], [4, 0, -1], [1, 2, 77], [0, 1, 2]):
        ours, numpys = ([np.ones(5), np.arange(5.0), np.array(k)] for _ in range(2))
        errors = []
        for function, arguments in ((compiled, ours), (plain, numpys)):
            try:
                result = function(*arguments)
            except IndexError as error:
                result = None
                errors.append(str(error))
            arguments.append(np.array(result, float))
        assert len(errors) != 1
        for a, b in zip(ours, numpys, strict=True):
            np.testing.assert_array_equal(a, b)
    assert CompiledLink in [type(link) for link in compiled._links.entered]
