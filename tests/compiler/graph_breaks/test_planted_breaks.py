"""One construct that cannot be compiled in the middle of a function: results are Python's, and the rest is compiled."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmarks.planted_breaks import CONSTRUCTS, SKELETONS, planted_module

PARTIAL = {("branch", "walrus_foreign")}
"""Where less than that can be compiled."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module of all functions."""
    module = planted_module(tmp_path_factory.mktemp("planted"))
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("name", CONSTRUCTS)
@pytest.mark.parametrize("kind", SKELETONS)
def test_planted_breaks(planted: Any, kind: str, name: str, fresh: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Results, effects and later calls are those of the plain function; what is around the construct is compiled."""
    plain = getattr(planted, f"{kind}_{name}")
    compiled = jk.jit(plain)
    x = np.linspace(0.1, 1.5, 500)
    planted.SEEN.clear()
    expected = [plain(x, 3) for _ in range(4)]
    effects = [*planted.SEEN]
    planted.SEEN.clear()
    got = [compiled(x, 3) for _ in range(4)]
    assert effects == planted.SEEN
    for (value, array), (wanted, like) in zip(got, expected, strict=True):
        assert type(value) is type(wanted)
        np.testing.assert_allclose(value, wanted, rtol=1e-10)
        np.testing.assert_allclose(array, like, rtol=1e-12)
    explained = compiled.explain(x, 3)
    assert not explained.reason, explained.reason
    assert explained.kernels >= 2, str(explained)
    assert all(break_.reason for break_ in explained.breaks)
    assert "falls back" not in caplog.text
