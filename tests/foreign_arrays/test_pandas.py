"""Compiled functions of pandas' objects give what the functions give: elements, labels, names, dtypes, warnings."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import jitkernels as jk
from jitkernels.compiler.api import labelled_arguments

COUNT = labelled_arguments.MIN_LABELLED_ELEMENTS


def values() -> Any:
    return np.random.default_rng(0).random(COUNT)


def series() -> Any:
    return pd.Series(values(), index=np.arange(COUNT)[::-1], name="x")


def frame() -> Any:
    return pd.DataFrame(values().reshape(-1, 4), columns=list("abcd"), index=pd.RangeIndex(5, 5 + COUNT // 4))


FUNCTIONS: dict[str, Any] = {
    "exp": lambda x: np.exp(-x * x) * 2 + x / (1 + x),
    "compare": lambda x: (x > 0.5) & (x < 0.7),
    "where": lambda x: np.where(x > 0.5, x, 0),
    "maximum": lambda x: np.maximum(x, 0.5),
    "clip": lambda x: x.clip(0.2, 0.5),
    "round": lambda x: x.round(2),
    "cast": lambda x: x.astype("float32") * 2,
    "square": lambda x: x**2,
    "length": lambda x: x / len(x),
}
"""Elementwise ones, which compiled code serves."""
OTHERS: dict[str, Any] = {
    "centred": lambda x: x - x.mean(),
    "sum": lambda x: x.sum(),
    "deviation": lambda x: x.std(),
    "floor divide": lambda x: x // 0.25,
    "divide by zero": lambda x: (x * 0) // 0 + 1 / (x * 0),
    "isna": lambda x: x.isna(),
    "shift": lambda x: x.shift(1),
    "index": lambda x: x.iloc[3:] * 2,
    "by type": lambda x: x * 2 if isinstance(x, pd.Series | pd.DataFrame) else x * 3,
    "kept": lambda x: (x, x + 1),
}
"""What pandas defines otherwise than NumPy: these fall back."""


def same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, pd.Series):
        pd.testing.assert_series_equal(found, expected, check_names=True)
    elif isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    else:
        np.testing.assert_allclose(found, expected)


def served(compiled: Any) -> set[str]:
    return {reason for reason, _ in compiled.stats().python_reasons}


@pytest.mark.parametrize("make", [series, frame])
@pytest.mark.parametrize("name", [*FUNCTIONS, *OTHERS])
def test_functions(name: str, make: Any) -> None:
    function = (FUNCTIONS | OTHERS)[name]
    compiled, given = jk.jit(function), make()
    for _ in range(3):
        same(compiled(given), function(given))
    assert ("an object of pandas" in served(compiled)) == (name in FUNCTIONS)
    same(given, make())


def test_labels_of_several_objects() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * y + 1

    compiled, x = jk.jit(function), series()
    for y in (x.rename("y"), x, x * 2):
        same(compiled(x, y), function(x, y))
    assert served(compiled) == {"an object of pandas"}
    for y in (x[::-1], x.iloc[1:], frame(), x.reset_index(drop=True)):  # rows that pandas aligns
        same(compiled(x, y), function(x, y))


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.Series(values(), dtype="Float64"), lambda: series().where(series() > 0.1),
        lambda: pd.DataFrame({"a": values(), "b": np.arange(COUNT)}), lambda: series().iloc[:10],
        lambda: series().iloc[:0],
        lambda: pd.Series(values().astype(">f8")), lambda: pd.Series(np.arange(COUNT) % 7),
        lambda: pd.Series(values(), index=pd.MultiIndex.from_product([range(COUNT // 4), range(4)])),
        lambda: pd.Series(values(), index=np.zeros(COUNT)), lambda: pd.Index(values()),
    ],
)  # fmt: skip
def test_kinds_of_objects(make: Any) -> None:
    function = FUNCTIONS["exp"]
    compiled, given = jk.jit(function), make()
    expected = function(given)
    found = compiled(given)
    if isinstance(given, pd.Index):
        pd.testing.assert_index_equal(found, expected)
    else:
        same(found, expected)


def test_small_objects_do_not_keep_large_ones_from_code() -> None:
    compiled = jk.jit(FUNCTIONS["exp"])
    for _ in range(5):
        compiled(series().iloc[:8])
    compiled(series())
    assert "an object of pandas" in served(compiled)


def test_warnings_are_those_of_pandas() -> None:
    function: Any
    for function in (lambda x: np.log(x * 0), lambda x: x / 0, lambda x: np.exp(x * 1e5)):
        found = []
        for one in (function, jk.jit(function)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                same(one(series()), function(series()))
            found.append({str(warning.message) for warning in caught})
        assert found[0] == found[1]


def test_elements_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    compiled = jk.jit(FUNCTIONS["exp"])
    look_up = compiled.look_up

    def watched(_: Any, args: Any, kwargs: Any) -> Any:
        seen.append(args)
        return look_up(args, kwargs)

    monkeypatch.setattr(type(compiled), "look_up", watched)
    for given in (series(), frame()):
        compiled(given)
        assert np.shares_memory(seen[-1][0], given.to_numpy())
