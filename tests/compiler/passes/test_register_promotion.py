"""Register promotion: an element that all iterations of an inner loop read and write is a number inside of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.transforms.invariants import register_promotion
from jitkernels.compiler.transforms.invariants.outer_loop import OuterLoop

Program = Callable[..., Any]


def gathered(y: Any, a: Any, at: Any) -> Any:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            y[i] += a[i, k] * a[at[k], 0]
    return y


def in_sides(y: Any, a: Any, at: Any) -> Any:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] > 0.5:
                y[i] += a[at[k], k]
                if a[i, k] > 0.8:
                    y[i] *= 0.5
            else:
                y[i] -= 1
            y[i] += k
    return y


def of_two_arrays(y: Any, a: Any, at: Any) -> Any:
    z = np.zeros((len(y), 2))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            z[i, 1] = y[i] - z[i, 1] * a[at[k], k]
            y[i] = z[i, 1] + a[i, k]
    return y, z


def of_narrow_ints(y: Any, a: Any, at: Any) -> Any:
    n = np.zeros(len(y), np.int8)
    small = np.zeros(len(y), np.float32)
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            n[i] += np.int8(at[k] + 40)
            small[i] += a[at[k], k]
    return y, n, small


def until_an_element(y: Any, a: Any, at: Any) -> Any:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            y[i] += a[at[k], k]
            if y[i] > 1.2:
                break
    return y


def of_three_loops(y: Any, a: Any, at: Any) -> Any:
    for i in range(len(y)):
        for j in range(a.shape[0]):
            for k in range(a.shape[1]):
                y[i] += a[j, k] * a[at[k], 0]
    return y


def of_no_iterations(y: Any, a: Any, at: Any) -> Any:
    for i in range(a.shape[0]):
        for k in range(i, a.shape[1] - 6):
            y[i] += a[at[k], k]
    return y


def of_neighbours(y: Any, a: Any, at: Any) -> Any:
    """Another element of the same array, which may be the same one."""
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            y[i] += a[i, k] * y[at[k]]
    return y


def of_another_row(y: Any, a: Any, at: Any) -> Any:
    """An element that moves along with the loop."""
    for i in range(a.shape[0]):
        for k in range(min(a.shape)):
            y[k] += a[i, at[k]]
    return y


def of_a_branch_alone(y: Any, a: Any, at: Any) -> Any:
    """Where no iteration gets there, the element need not exist."""
    for i in range(a.shape[0] + 1):
        for k in range(a.shape[1]):
            if i < a.shape[0]:
                y[i] += a[i, k]
    return y


def of_a_slice(y: Any, a: Any, at: Any) -> Any:
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            y[i] += a[i, k] * y[: at[k] + 1].sum()
    return y


def of_a_while_loop(y: Any, a: Any, at: Any) -> Any:
    """The condition says whether the element exists."""
    i = 0
    while i <= a.shape[0]:
        k = 0
        while i < len(y) and k < a.shape[1]:
            y[i] += a[i, k]
            k += 1
        i += 1
    return y


PROMOTED = (gathered, in_sides, of_two_arrays, of_narrow_ints, until_an_element, of_three_loops, of_no_iterations)
STAY = (of_neighbours, of_another_row, of_a_branch_alone, of_a_slice, of_a_while_loop)


def arguments(rows: int = 4, columns: int = 7) -> tuple[Any, ...]:
    random = np.random.default_rng(rows)
    return random.random(rows), random.random((rows, columns)), random.integers(-min(rows, 2), max(rows, 1), columns)


def outcome(program: Program, *values: Any) -> Any:
    """What a call returns or raises, and what it leaves in its arguments."""
    try:
        with np.errstate(all="ignore"):
            found = program(*values)
    except IndexError as error:
        found = str(error)
    return found, values


def check(program: Program, *values: Any) -> None:
    function = jk.jit(program, strict=True)
    function(*arguments())
    expected, found = (outcome(one, *(value.copy() for value in values)) for one in (program, function))
    if isinstance(expected[0], str):
        assert found[0] == expected[0]
        expected, found = expected[1], found[1]
    for one, other in zip(flat(found), flat(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-12)


def flat(value: Any) -> list[Any]:
    return [part for one in value for part in flat(one)] if isinstance(value, tuple) else [np.asarray(value)]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many arrays each loop carries as numbers."""
    found: list[int] = []
    promoted = register_promotion.promoted

    def counted(outer: OuterLoop) -> Any:
        result = promoted(outer)
        found.append(len(result[1]))
        return result

    monkeypatch.setattr(register_promotion, "promoted", counted)
    return found


@pytest.mark.per_push
@pytest.mark.parametrize("program", PROMOTED)
def test_promoted(program: Program, counts: list[int]) -> None:
    check(program, *arguments())
    assert sum(counts) > 0


@pytest.mark.per_push
@pytest.mark.parametrize("program", STAY)
def test_stays_in_memory(program: Program, counts: list[int]) -> None:
    check(program, *arguments())
    assert sum(counts) == 0


@pytest.mark.per_push
@pytest.mark.parametrize("program", [*PROMOTED, *STAY])
@pytest.mark.parametrize("shape", [(4, 7), (1, 7), (0, 3), (3, 0), (9, 2)])
def test_shapes(program: Program, shape: tuple[int, int]) -> None:
    check(program, *arguments(*shape))


@pytest.mark.per_push
@pytest.mark.parametrize("program", [*PROMOTED[:2], of_two_arrays, of_three_loops, of_neighbours])
@pytest.mark.parametrize("index", [4, -5, 2**40])
def test_index_errors(program: Program, index: int) -> None:
    """A call that raises leaves what it had stored before."""
    y, a, at = arguments()
    at[3] = index
    check(program, y, a, at)
