"""Mistakes planted in right functions: the report names the line, the cause and the cure.

Where plain Python raises, its exception is what users see, from the same lines.
"""

import inspect
import traceback
from pathlib import Path
from typing import Any

import planted_explained  # noqa: F401
import planted_places  # noqa: F401  # which fill the table
import planted_raised  # noqa: F401
import pytest
from planted import MISTAKES, Mistake

import jitkernels as jk


def here(mistake: Mistake) -> set[int]:
    """The lines of a file that say so."""
    file = inspect.unwrap(mistake.function).__code__.co_filename
    return {n for n, line in enumerate(Path(file).read_text().splitlines(), 1) if line.endswith("# here")}


def lines_of(mistake: Mistake, error: BaseException) -> list[int]:
    file = inspect.unwrap(mistake.function).__code__.co_filename
    found = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == file]
    return [one.lineno or 0 for one in found]


def error_of(function: Any, given: Any) -> Exception | None:
    try:
        found = function(*given)
        if inspect.iscoroutine(found):
            found.close()
    except Exception as error:  # noqa: BLE001  # whatever it is
        return error
    return None


def test_number_of_planted_errors() -> None:
    assert len(MISTAKES) >= 60


@pytest.mark.parametrize(
    "mistake", [one for one in MISTAKES if one.kind == "raised"], ids=lambda one: one.function.__name__
)
def test_exceptions_name_the_line(mistake: Mistake) -> None:
    compiled = jk.jit(mistake.function)
    expected = error_of(mistake.function, mistake.make())
    assert expected is not None
    assert here(mistake).intersection(lines_of(mistake, expected))
    for _ in range(2):  # a second call has its code
        found = error_of(compiled, mistake.make())
        assert (type(found), str(found)) == (type(expected), str(expected))
        assert found is not None
        assert lines_of(mistake, found) == lines_of(mistake, expected)


@pytest.mark.parametrize(
    "mistake", [one for one in MISTAKES if one.kind != "raised"], ids=lambda one: one.function.__name__
)
def test_unsupported_constructs_are_reported(mistake: Mistake) -> None:
    compiled = jk.jit(mistake.function)
    assert error_of(compiled, mistake.make()) is None
    if mistake.kind == "refused":
        error = error_of(jk.jit(mistake.function, strict=True), mistake.make())
        assert type(error) is jk.TracingError
        report = str(error)
    else:
        report = str(compiled.explain(*mistake.make()))
    text, first = inspect.getsourcelines(inspect.unwrap(mistake.function))
    (line,) = here(mistake).intersection(range(first, first + len(text)))
    assert f"{inspect.getsourcefile(mistake.function)}:{line}" in report
    assert [word for word in mistake.words if word not in report] == []
