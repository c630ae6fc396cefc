"""The node tests of the package onnx: which ones run by default, and which are excluded, by name and with a reason."""

import functools
import importlib.util
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest


def _is_installed() -> bool:
    """Whether the package is there: this folder is a namespace of its name, too."""
    try:
        return importlib.util.find_spec("onnx.defs") is not None
    except ModuleNotFoundError:
        return False


needs_onnx = pytest.mark.skipif(
    not _is_installed(), reason="the package onnx is not installed: pip install 'jitkernels[onnx]'"
)
EXCLUDED = {
    r"test_bernoulli.*": "random numbers, of a generator that ONNX does not define",
    r"test_dft_inverse(_opset19)?": "expects the rounding errors of NumPy's FFT beside zeros, to 1e-7",
    r"test_causal_conv_with_state_silu_fp16(_expanded)?": "expects each step of a sigmoid rounded to float16",
    r"test_loop16_seq_none": "ONNX's own comparison takes no sequence of arrays without dimensions",
}
"""Patterns of names, and why tests of these are not run."""


@functools.cache
def all_cases() -> list[Any]:
    """All node tests. They are made from NumPy code that warns."""
    from onnx.backend.test.loader import load_node_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return list(load_node_model_tests())


def cases() -> list[Any]:
    """The node tests that run: all but excluded ones."""
    return [case for case in all_cases() if reason_of(case.name) is None]


def reason_of(name: str) -> str | None:
    """Why a test is excluded; None for one that runs."""
    return next((reason for pattern, reason in EXCLUDED.items() if re.fullmatch(pattern, name)), None)


def selected() -> list[Any]:
    """The tests that run by default: small ones, one of each operator. All run with -m full."""
    seen: set[str] = set()
    chosen = []
    for case in cases():
        operators = {node.op_type for node in case.model.graph.node}
        is_small = len(case.model.graph.node) <= 3 and "bf16" not in case.name and "attention" not in case.name
        if is_small and not operators <= seen:
            seen |= operators
            chosen.append(case)
    return chosen


def run_case(case: Any) -> Any:
    """Run a test by the package; raises AssertionError where results differ. Returns the model."""
    from onnx import TensorProto, numpy_helper
    from onnx.backend.test.runner import Runner

    from jitkernels import onnx

    def array(value: Any) -> Any:
        return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value

    model = onnx.load(case.model)
    names = [one.name for one in model.graph.inputs]
    for inputs, expected in case.data_sets:
        results = model.run(None, dict(zip(names, map(array, inputs), strict=False)))
        Runner.assert_similar_outputs([array(one) for one in expected], results, case.rtol, case.atol)
    return model


def level_of(model: Any) -> str:
    """The lowest of the levels by which the nodes of a model run: compiled, NumPy or onnx.reference."""
    levels = {level for plan in model.plans for level in plan.levels_of_nodes}
    return next((level for level in ("onnx.reference", "NumPy") if level in levels), "compiled")


def failures_of(tests: Sequence[Any]) -> tuple[list[str], dict[str, int]]:
    """The failures of tests, and how many of the others run at each level."""
    failures: list[str] = []
    counts = {"compiled": 0, "NumPy": 0, "onnx.reference": 0}
    for case in tests:
        try:
            with np.errstate(all="ignore"):
                counts[level_of(run_case(case))] += 1
        except Exception as error:  # noqa: BLE001  # all failures are reported together
            failures.append(f"{case.name}: {type(error).__name__}: {str(error)[:300]}")
    return failures, counts
