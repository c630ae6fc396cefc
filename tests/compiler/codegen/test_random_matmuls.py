"""Random programs around matrix products: results and arguments are NumPy's.

``python tests/compiler/codegen/test_random_matmuls.py 2000 [first number]`` runs that many and prints what was wrong.
"""

import itertools
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from random_products import RandomProducts

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

specialization.SECONDS_OF_PYTHON = specialization.SECONDS_OF_RESULT = 0.0
PROGRAMS, MANY_PROGRAMS = 24, 2000
TOLERANCE = {"float32": 1e-4, "float64": 1e-9}


def run(function: Any, arguments: list[Any]) -> tuple[str, Any]:
    """What a call gives, or the type of what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "", function(*arguments)
        except Exception as error:  # noqa: BLE001  # whatever a program raises
            return type(error).__name__, error


def difference(found: Any, right: Any) -> str:
    """How a value differs from the right one; an empty text if it does not."""
    one, other = np.asarray(found), np.asarray(right)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
    error = TOLERANCE.get(other.dtype.name, 0) * max(1, float(abs(other).max(initial=0)))
    wrong = ~np.isclose(one, other, rtol=0, atol=error, equal_nan=True)
    if not wrong.any():
        return ""
    where = tuple(int(at[0]) for at in np.nonzero(np.atleast_1d(wrong)))
    return f"{one[where] if one.ndim else one} instead of {other[where] if one.ndim else other} at {where}"


def wrong_with(number: int) -> str:
    """What is wrong with a program; an empty text if all is as it should be."""
    program = RandomProducts(number)
    plain = program.function()
    compiled = jk.jit(plain, profile=bool(number % 2))
    for call in range(3):
        jk.set_num_threads(1 + (number // 2 + call) % 3)
        given, expected = program.arguments(call), program.arguments(call)
        failed, found = run(compiled, given)
        raised, right = run(plain, expected)
        text = f"raised {failed or 'nothing'}, {found if failed else ''}" if failed != raised else ""
        if not raised and not failed:
            pairs = itertools.chain(zip(found, right, strict=True), zip(given, expected, strict=True))
            texts = [f"{i} of {len(right)} and arguments: {difference(*one)}" for i, one in enumerate(pairs)]
            text = next((one for one in texts if not one.endswith(": ")), "")
        if text:
            shapes = [one.shape for one in given]
            return f"{number}, call {call}, {program.dtype} {shapes} {program.layouts}: {text}\n{program.source}"
    return ""


def failures(numbers: range) -> list[str]:
    before = jk.get_num_threads()
    found = [wrong_with(number) for number in numbers]
    jk.set_num_threads(before)
    return [one for one in found if one]


def test_random_products() -> None:
    found = failures(range(PROGRAMS))
    assert not found, "\n".join(found)


@pytest.mark.full
def test_many_random_products() -> None:
    found = failures(range(10_000, 10_000 + MANY_PROGRAMS))
    assert not found, "\n".join(found)


if __name__ == "__main__":
    count, first = [*map(int, sys.argv[1:3]), 0][:2]
    for number in range(first, first + count):
        for text in failures(range(number, number + 1)):
            print(text, flush=True)  # noqa: T201
