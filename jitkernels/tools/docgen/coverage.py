"""The coverage table: the implementations of each kernel, their dtypes, and whether they run here."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from jitkernels.attrs.schema.base import KernelAttr, rows
from jitkernels.attrs.schema.registry import implementations


@dataclass(frozen=True)
class Covered:
    """One implementation of one kernel for one dtype: usable here or not, and the reason if any case is not."""

    kernel: str
    implementation: str
    dtype: str
    usable: bool
    why: str


def covered() -> Iterator[Covered]:
    """Return the coverage of all cases tagged for every machine; in the registry's order."""
    for row in own_rows():
        for name, entry in implementations(row).items():
            for dtype, cases in cases_by_dtype(row).items():
                reasons = [entry.reason_against(attr) for attr in cases]
                why = "; ".join(dict.fromkeys(reason for reason in reasons if reason is not None))
                yield Covered(row.kernel_type.name, name, dtype, None in reasons, why)


def own_rows() -> list[type[KernelAttr]]:
    """Return the named rows, without the rows that calls register on demand."""
    result = [row for row in rows.values() if row.implemented_as is None and any(True for _ in row.sweep())]
    return sorted(result, key=lambda row: row.__module__)  # the order in which families were imported must not matter


def cases_by_dtype(row: type[KernelAttr]) -> dict[str, list[KernelAttr]]:
    """Return the cases tagged for every machine, by dtype."""
    cases: dict[str, list[KernelAttr]] = {}
    for case in row.sweep():
        if "ci" in case.tags:
            cases.setdefault(str(case.attr.fields().get("dtype", "-")), []).append(case.attr)
    return dict(sorted(cases.items()))


def page_lines() -> Iterator[str]:
    """Return a Markdown table, identical on every machine: the dtypes of jitkernels' implementations of its kernels."""
    own = {row: _own_names(row) for row in own_rows() if row.__module__.startswith("jitkernels.")}
    names = sorted({*itertools.chain(*own.values())}, key=lambda name: (name == "refer", name != "gen", name))
    yield f"| kernel | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for row, known in own.items():
        dtypes = ", ".join(cases_by_dtype(row))
        cells = [dtypes if name in known else "" for name in names]
        yield f"| [{row.kernel_type.name}](#{row.kernel_type.name.lower()}) | {' | '.join(cells)} |"


def _own_names(row: type[KernelAttr]) -> set[str]:
    """Return the row's implementations that come with jitkernels."""
    entries = implementations(row).items()
    return {name for name, entry in entries if entry.function.__module__.startswith("jitkernels.")}
