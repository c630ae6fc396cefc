"""Random NumPy programs, compiled: results, their types, and written arguments are NumPy's.

``python tests/compiler/test_random_programs.py 20000 [first number]`` runs that many and prints what was wrong, cut
down to the
statements that matter; so does ``pytest -m full``. Every program follows from its number.
"""

import dataclasses
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from random_maker import Maker
from random_programs import RandomProgram, owner

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization

specialization.SECONDS_OF_PYTHON = specialization.SECONDS_OF_RESULT = 0.0  # small arrays are what programs are made of
PROGRAMS, MANY_PROGRAMS = 100, 20_000
SLACK = 4.0
CALLS = ("first", "again", "other sizes", "out")


def run(function: Any, arguments: list[Any], **keywords: Any) -> tuple[str, Any]:
    """What a call gives, or the type of what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return "", function(*arguments, **keywords)
        except Exception as error:  # noqa: BLE001  # whatever a program raises
            return type(error).__name__, error


def difference(got: Any, right: Any, error: float, what: str) -> str:
    """How a value differs from the right one; an empty text if it does not."""
    if type(got) is not type(right):
        return f"{what}: type {type(got).__name__} instead of {type(right).__name__}"
    if isinstance(right, tuple):
        return "no tuples within tuples"
    one, other = np.asarray(got), np.asarray(right)
    if one.dtype != other.dtype or one.shape != other.shape:
        return f"{what}: {one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
    if isinstance(right, np.ndarray) and right.size and got.flags.writeable != right.flags.writeable:
        return f"{what}: writeable is {got.flags.writeable}"
    if other.dtype.kind != "f":
        wrong = one != other
    else:
        with np.errstate(all="ignore"):
            equal = (one == other) | ((one != one) & (other != other))
            close = abs(one.astype("f8") - other.astype("f8")) <= SLACK * error
        wrong = ~(equal | close)
    if wrong.any():
        where = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
        found, expected = np.atleast_1d(one)[where], np.atleast_1d(other)[where]
        return f"{what}: {found!r} instead of {expected!r} at {where}, error {error:.1e}"
    return ""


def compare(program: RandomProgram, plain: Any, compiled: Any, call: int, sizes: dict[str, int], with_out: bool) -> str:
    given, expected = program.values(call, sizes), program.values(call, sizes)
    raised, right = run(plain, expected)
    keywords: dict[str, Any] = {}
    if with_out:
        rights = right if isinstance(right, tuple) else (right,)
        if raised or not all(isinstance(one, np.ndarray) for one in rights):
            return ""
        out = tuple(np.full(one.shape, 77).astype(one.dtype) for one in rights)
        keywords["out"] = out if isinstance(right, tuple) else out[0]
    failed, got = run(compiled, given, **keywords)
    if failed or raised:
        return (
            ""
            if failed == raised
            else f"{failed or 'nothing'} raised instead of {raised or 'nothing'}: {got if failed else right}"
        )
    if with_out and got is not keywords["out"]:
        return "what is given back is not `out`"
    gots, rights = ((one,) if len(program.returned) == 1 else one for one in (got, right))
    if len(gots) != len(rights):
        return f"{len(gots)} results instead of {len(rights)}"
    for i, (one, other) in enumerate(zip(gots, rights, strict=True)):
        found = difference(one, other, program.errors[i], f"result {i}")
        if found and not (with_out and "writeable" in found):
            return found
        for name, a, b in zip(program.names, given, expected, strict=True):
            if with_out or not isinstance(b, np.ndarray) or not isinstance(other, np.ndarray):
                continue
            if (other is b) != (one is a):
                return f"result {i} is{' not' * (other is b)} the argument {name}"
            if other.size and np.shares_memory(other, b) != np.shares_memory(one, a):
                return f"result {i} shares {'no ' * np.shares_memory(other, b)}memory with {name}"
        for j in range(i):
            if with_out or not isinstance(other, np.ndarray) or not isinstance(rights[j], np.ndarray):
                continue
            if other.size and np.shares_memory(other, rights[j]) != np.shares_memory(one, gots[j]):
                return f"results {i} and {j} share {'no ' * np.shares_memory(other, rights[j])}memory"
    for name, one, other, error in zip(program.names, given, expected, program.argument_errors, strict=True):
        found = difference(owner(one), owner(other), error, f"argument {name}")
        if found:
            return found
    return ""


def wrong_with(program: RandomProgram, level: int, backend: str = "native") -> str:
    """What is wrong with a program; an empty text if all is as it should be."""
    plain = program.function()
    # With a profile calls are Python's; without it those of so little would be NumPy's, if compiled code cannot
    # take them.
    counts = bool((program.number + level) % 2)
    compiled = jk.jit(plain, opt_level=level, backend=backend, profile=counts)
    other_sizes = program.other_sizes()
    for call, name in enumerate(CALLS):
        sizes = other_sizes if name == "other sizes" else program.sizes
        found = compare(program, plain, compiled, call, sizes, name == "out")
        if found:
            return f"{name}: {found}"
    bad = [
        note
        for kept in compiled._specializations.values()
        for one in kept
        for note in (one.reason, *one.notes)
        if "compiler failed" in note or "AssertionError" in note
    ]
    return bad[0] if bad else ""


def cut_down(program: RandomProgram, level: int, backend: str = "native") -> RandomProgram:
    """The same failure with fewer statements and results."""
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(program.lines))):
            fewer = dataclasses.replace(program, lines=program.lines[:i] + program.lines[i + 1 :])
            if _still_fails(fewer, level, backend):
                program, changed = fewer, True
                break
        else:
            for i in range(len(program.returned)):
                if len(program.returned) > 1:
                    fewer = dataclasses.replace(
                        program,
                        returned=program.returned[:i] + program.returned[i + 1 :],
                        errors=program.errors[:i] + program.errors[i + 1 :],
                    )
                    if _still_fails(fewer, level, backend):
                        program, changed = fewer, True
                        break
    return program


def _still_fails(program: RandomProgram, level: int, backend: str) -> bool:
    if run(program.function(), program.values(0, program.sizes))[0]:
        return False
    return bool(wrong_with(program, level, backend))


def failures(numbers: Iterable[int], levels: tuple[int, ...] = (0, 3), backend: str = "native") -> list[str]:
    """What is wrong with programs, each cut down."""
    found = []
    for number in numbers:
        program = Maker(number).make()
        for level in levels:
            wrong = wrong_with(program, level, backend)
            if wrong:
                small = cut_down(program, level, backend)
                found.append(f"level {level}: {wrong_with(small, level, backend)}\n{small}")
                break
    return found


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int) -> None:
    size = PROGRAMS // 4
    found = failures(range(part * size, part * size + size))
    assert not found, "\n".join(found)


@pytest.mark.full
def test_many_random_programs() -> None:
    found = failures([*range(PROGRAMS, 2 * PROGRAMS), *range(10_000, 10_000 + MANY_PROGRAMS)])
    assert not found, "\n".join(found)


if __name__ == "__main__":
    count, first = [*map(int, sys.argv[1:3]), 0][:2]
    for number in range(first, first + count):
        if number % 500 == 0:
            print(number, file=sys.stderr, flush=True)  # noqa: T201
        for text in failures(range(number, number + 1), backend=(sys.argv[3:] or ["native"])[0]):
            print(text, flush=True)  # noqa: T201
