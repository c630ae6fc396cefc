"""ONNX's own node tests: all pass, and most run as compiled code alone."""

import re

import pytest
from onnx_cases import EXCLUDED, all_cases, cases, failures_of, needs_onnx, reason_of, selected

pytestmark = needs_onnx
LEAST_PASSED, LEAST_COMPILED = 0.97, 0.85
"""Shares of all node tests: those that pass, and those whose nodes are all compiled."""


def test_node_tests_of_all_operators_pass() -> None:
    failures, counts = failures_of(selected())
    assert not failures, "\n".join(failures)
    assert counts["compiled"] >= 0.75 * sum(counts.values()), counts


@pytest.mark.full
def test_all_node_tests_pass() -> None:
    failures, counts = failures_of(cases())
    total = len(all_cases())
    print(f"{total} node tests: {counts}, {total - len(cases())} excluded")  # noqa: T201
    assert not failures, "\n".join(failures)
    assert sum(counts.values()) >= LEAST_PASSED * total
    assert counts["compiled"] >= LEAST_COMPILED * total, counts


def test_each_exclusion_names_a_test_and_a_reason() -> None:
    names = [case.name for case in all_cases()]
    for pattern, reason in EXCLUDED.items():
        assert reason
        assert any(re.fullmatch(pattern, name) for name in names), f"no test is called {pattern}"
    assert reason_of("test_add") is None
    assert sum(reason_of(name) is not None for name in names) < (1 - LEAST_PASSED) * len(names)
