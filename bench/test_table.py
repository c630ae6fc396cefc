"""The benchmark's table for pytest-benchmark: every row, implementation, peer and ``ci`` attr, the pick beside them.

Run ``pytest bench --benchmark-only``; ``--benchmark-json`` stores the figures. `jitkernels bench` shows the same table.
"""

import functools
from collections.abc import Iterator
from typing import Any

import pytest

from jitkernels.attrs.base import Case
from jitkernels.benchmark import table
from jitkernels.peers import peers_of
from jitkernels.registry import all_rows, implementations


def _cases() -> Iterator[Any]:
    for row in all_rows():
        for case in row.sweep():
            if "ci" in case.tags:
                for name in (table.PICK, *implementations(row), *peers_of(row)):
                    yield pytest.param(case, name, id=f"{case.attr.name}-{case.name}-{name}")


@functools.lru_cache(maxsize=1)
def _contest(case: Case) -> table.Contest:
    """The calls of one attr, kept while its tests are running one after the other."""
    return table.contest(case.attr, peers=True)


@pytest.mark.parametrize(("case", "name"), list(_cases()))
def test_call(benchmark: Any, case: Case, name: str) -> None:
    benchmark.group = f"{case.attr.name}-{case.name}"
    found = _contest(case)
    if name == table.PICK:
        benchmark.extra_info["implementation"] = found.label
        name = found.pick
    if name not in found.calls:
        reason = implementations(type(case.attr)).get(name)
        pytest.skip(f"{name}: {reason.reason_against(case.attr) if reason else 'it does not compute this'}")
    call = found.calls[name]
    benchmark(call.func, *call.args, **call.keywords)
