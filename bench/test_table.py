"""The benchmark's table for pytest-benchmark: every row, implementation, peer and ``ci`` attr, the pick beside them.

Run ``pytest bench --benchmark-only``; ``--benchmark-json`` stores the figures, ``-m tiny`` takes the smallest attr of
each row alone. `jitkernels bench` shows the same table.
"""

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from jitkernels.attrs.schema.base import Case
from jitkernels.attrs.schema.registry import all_schemas, implementations
from jitkernels.benchmarks import table
from jitkernels.benchmarks.peers import peers_of
from jitkernels.selection.size_classes import nbytes

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per_channel:UserWarning")


def _cases(only_tiny: bool) -> Iterator[Any]:
    for row in all_schemas():
        cases = [case for case in row.sweep() if "ci" in case.tags]
        smallest = min(cases, key=lambda case: nbytes(case.attr))
        for case in [smallest] if only_tiny else cases:
            marks = [pytest.mark.tiny] if case is smallest else []
            for name in (table.PICK, *implementations(row), *peers_of(row)):
                yield pytest.param(case, name, id=f"{case.attr.name}-{case.name}-{name}", marks=marks)


@functools.lru_cache(maxsize=1)
def _contest(case: Case) -> table.Contest:
    """The calls of one attr, kept while its tests are running one after the other."""
    return table.contest(case.attr, peers=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make only the tests that ``-m tiny`` selects: all of them are ten thousand."""
    only_tiny = metafunc.config.getoption("markexpr") == "tiny"
    metafunc.parametrize(("case", "name"), list(_cases(only_tiny)))


def test_call(benchmark: Any, case: Case, name: str) -> None:
    benchmark.group = f"{case.attr.name}-{case.name}"
    contest = _contest(case)
    if name == table.PICK:
        benchmark.extra_info["implementation"] = contest.label
        name = contest.pick
    if name not in contest.calls:
        reason = implementations(type(case.attr)).get(name)
        pytest.skip(f"{name}: {reason.reason_against(case.attr) if reason else 'it does not support this attr'}")
    call = contest.calls[name]
    benchmark(call.func, *call.args, **call.keywords)
