"""Each function of `jk.xp` gives what NumPy's function of that name gives, computed at once and as an expression."""

import warnings
from typing import Any

import numpy as np
import pytest
from array_api_cases import CASES, SAMPLES, all_lazy, operands_of, same

import jitkernels as jk
from jitkernels.xp import elementwise_functions, statistical_functions

xp = jk.xp
REDUCTIONS = statistical_functions.FUSED
ELEMENTWISE = sorted(elementwise_functions.UFUNCS)
__all__ = ["all_lazy"]


def test_cases_cover_the_namespace() -> None:
    """Whoever adds a function adds a case."""
    named = {*ELEMENTWISE, *REDUCTIONS, *CASES}
    functions = {*xp.FUNCTIONS, *(f"linalg.{name}" for name in xp.linalg.__all__)}
    functions |= {f"fft.{name}" for name in xp.fft.__all__}
    assert named == functions


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions(name: str, is_lazy: bool, request: pytest.FixtureRequest) -> None:
    if is_lazy:
        request.getfixturevalue("all_lazy")
    function, ufunc = getattr(xp, name), getattr(np, name)
    tried = 0
    for sample in SAMPLES:
        operands = operands_of(name, sample, ufunc.nin)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = ufunc(*operands)
            except TypeError:
                with pytest.raises(TypeError):
                    function(*map(xp.asarray, operands))
                continue
            same(function(*map(xp.asarray, operands)), expected)
        tried += 1
    assert tried


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, is_lazy: bool, request: pytest.FixtureRequest) -> None:
    if is_lazy:
        request.getfixturevalue("all_lazy")
    for sample in SAMPLES:
        if sample.dtype.kind == "c" and name in ("max", "min"):
            continue
        x = np.where(np.isfinite(sample), sample, 1).astype(sample.dtype)[:12].reshape(3, 4)
        x = (x % 4).astype(x.dtype) if x.dtype.kind in "iuf" else x
        for keywords in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}, {"axis": (0, 1)}, {"axis": ()}):
            given: Any = dict(keywords)
            if name in ("std", "var"):
                given["correction"] = 1.0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = getattr(np, name)(x, **given)
                same(getattr(xp, name)(xp.asarray(x), **given), expected)


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("name", sorted(CASES))
def test_other_functions(name: str, is_lazy: bool, request: pytest.FixtureRequest) -> None:
    if is_lazy:
        request.getfixturevalue("all_lazy")
    folder, _, own = name.rpartition(".")
    space, numpy_space = (getattr(xp, folder), getattr(np, folder)) if folder else (xp, np)
    for case in CASES[name]:
        arguments, keywords = case.arguments, case.keywords
        expected = (case.expected or getattr(numpy_space, own))(*arguments, **keywords)
        given = [xp.asarray(one) if type(one) is np.ndarray else _listed(one) for one in arguments]
        named = {key: xp.asarray(one) if type(one) is np.ndarray else one for key, one in keywords.items()}
        same(getattr(space, own)(*given, **named), expected, case.tolerance)


def _listed(value: Any) -> Any:
    is_arrays = type(value) in (list, tuple) and value and type(value[0]) is np.ndarray
    return type(value)(map(xp.asarray, value)) if is_arrays else value
