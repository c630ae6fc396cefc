"""Every row x implementation x ``ci`` attr, and the cache's own pick beside them, for pytest-benchmark.

Run ``pytest bench --benchmark-only``; ``--benchmark-json`` stores the figures.
"""

from collections.abc import Iterator
from typing import Any

import pytest

import jitkernels as jk
from jitkernels.attrs.base import Case
from jitkernels.registry import all_rows, implementations


def _cases() -> Iterator[Any]:
    for row in all_rows():
        for case in row.sweep():
            if "ci" in case.tags:
                for name in ("pick", *implementations(row)):
                    yield pytest.param(case, name, id=f"{case.attr.name}-{case.name}-{name}")


@pytest.mark.parametrize(("case", "name"), list(_cases()))
def test_call(benchmark: Any, case: Case, name: str) -> None:
    benchmark.group = f"{case.attr.name}-{case.name}"
    if name == "pick":
        function = jk.KernelFuncs.cache().at(case.attr)
        benchmark.extra_info["implementation"] = function.__self__.implementation  # type: ignore[attr-defined]
    else:
        found = implementations(type(case.attr))[name]
        reason = found.reason_against(case.attr)
        if reason is not None:
            pytest.skip(f"{name} cannot be used: {reason}")
        function = jk.get_all_candidates(case.attr)[name]
    benchmark(function, *case.attr.signature().sample())
