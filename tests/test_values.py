"""Every implementation of every row gives the right values, and touches nothing else."""

import cases
import numpy as np
import oracles
import pytest

from jitkernels import set_num_threads, testing
from jitkernels.attrs.base import KernelAttr, Tolerance
from jitkernels.tuning.agreement import beyond


@pytest.mark.parametrize(("attr", "name"), cases.every_attr())
def test_values(attr: KernelAttr, name: str) -> None:
    """Every variant, flush against guard pages on both sides, and in place where the row allows it."""
    for kernel in cases.kernels_of(attr, name):
        testing.check_values(attr, kernel.callable, oracles.expected, label=repr(kernel))
        testing.check_in_place(attr, kernel.callable, oracles.expected, label=repr(kernel))


@pytest.mark.parametrize(("attr", "name"), cases.every_middle())
def test_slow_path_gives_the_same(attr: KernelAttr, name: str) -> None:
    """`Kernel.run`, which serves whatever the compiled launcher does not take."""
    for kernel in cases.kernels_of(attr, name):
        testing.check_values(attr, kernel.run, oracles.expected, label=f"run of {kernel!r}")


@pytest.mark.parametrize(("row", "name"), cases.every_implementation())
def test_several_threads(row: type[KernelAttr], name: str) -> None:
    """Large cases on two and on more threads than there are cores, all variants."""
    from jitkernels import get_num_threads

    before = get_num_threads()
    for dtype in ("float32", "float64"):
        attr = _large(testing.middle(row, dtype))
        cases.usable(attr, name)
        for threads in (2, 5):
            try:
                set_num_threads(threads)
                for kernel in cases.kernels_of(attr, name):
                    testing.check_values(attr, kernel.callable, label=f"{kernel!r} on {threads} threads")
            finally:
                set_num_threads(before)


def _large(attr: KernelAttr) -> KernelAttr:
    """The attr with its integers doubled in turn until a call takes some 100 us."""
    names = [key for key, value in attr.fields().items() if type(value) is int]
    turn = 0
    while attr.operations() < 2**18:
        name = names[turn % len(names)]
        attr = type(attr)(**attr.fields() | {name: 2 * max(1, attr.fields()[name]) + 1})
        turn += 1
    return attr


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_oracle_exponential_agrees_with_fifty_digits(dtype: str) -> None:
    """Long double's exp, which the oracles lean on, is much closer to the truth than the tolerance."""
    points = np.concatenate([np.linspace(-11, 11, 397), np.linspace(-80, 80, 41)]).astype(dtype)
    off = beyond(
        oracles.exp(points.astype(oracles.WIDE)).astype(np.float64), oracles.mpmath_exp(points), Tolerance(1)
    )
    assert not off.any()


@pytest.mark.parametrize("row", cases.every_row())
def test_sweep_names_are_unique_and_cover_both_types(row: type[KernelAttr]) -> None:
    names = [case.name for case in row.sweep()]
    assert len(names) == len(set(names))
    assert {"float32", "float64"} <= {case.attr.fields()["dtype"] for case in testing.ci_cases(row)}
