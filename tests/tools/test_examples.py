"""The examples run at small size with the results of NumPy, and each draws its picture."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import jitkernels as jk

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL: dict[str, dict[str, Any]] = {
    "game_of_life": {"size": 40, "count": 30},
    "heat_equation": {"size": 30, "steps": (5, 40)},
    "k_means": {"count": 200, "iterations": 5},
    "kalman_filter": {"count": 100},
    "lenet_digits": {"steps": 60, "count": 500},
    "logistic_regression": {"steps": 40, "count": 500},
    "lstm_sequence": {"steps": 30},
    "mlp_adam": {"steps": 60, "count": 500},
    "neural_ode": {"steps": 60, "count": 60},
}


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    mpl.use("Agg")
    return import_module


def test_every_example_is_tested() -> None:
    assert sorted(SMALL) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.per_push
@pytest.mark.parametrize("name", SMALL)
def test_pictures(name: str, examples: Callable[[str], Any], tmp_path: Path) -> None:
    module = examples(name)
    result = module.run(**SMALL[name])
    place = tmp_path / f"{name}.png"
    draw = getattr(module, "draw", None) or examples("logistic_regression").draw
    draw(result, place)
    assert place.stat().st_size > 5000
    compiled = [one for one in vars(module).values() if isinstance(one, type(jk.jit(np.sin)))]
    assert compiled
    for one in compiled:
        assert one.stats().kernels > 0, "nothing was compiled"


@pytest.mark.parametrize("name", ["game_of_life", "heat_equation", "k_means", "kalman_filter", "lstm_sequence"])
def test_examples_match_plain_numpy(name: str, examples: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    module = examples(name)
    found = module.run(**SMALL[name])
    for key, one in list(vars(module).items()):
        if isinstance(one, type(jk.jit(np.sin))):
            monkeypatch.setattr(module, key, one.__wrapped__)
    _same(found, module.run(**SMALL[name]))


def _same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        for one, other in zip(found, expected, strict=True):
            _same(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_training_examples_converge(examples: Callable[[str], Any]) -> None:
    for name, least in (("logistic_regression", 0.9), ("mlp_adam", 0.9), ("lenet_digits", 0.85)):
        losses, right, *_ = examples(name).run(**SMALL[name])
        assert losses[-1] < losses[0] / 3
        assert right > least
    path, fitted, losses = examples("neural_ode").run(steps=300, count=60)
    assert losses[-1] < losses[0] / 5
    assert path.shape == fitted.shape
    assert "logistic_regression" in sys.modules
