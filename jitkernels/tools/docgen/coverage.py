"""The table of coverage: which implementation there is of which kernel, for which dtypes, and whether it runs here."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from jitkernels.attrs.base import KernelAttr, rows
from jitkernels.registry import implementations


@dataclass(frozen=True)
class Covered:
    """One implementation of one kernel for one dtype: usable here, and why not, where some case of it is not."""

    kernel: str
    implementation: str
    dtype: str
    usable: bool
    why: str


def covered() -> Iterator[Covered]:
    """All of them, as the cases tell that run everywhere; kernels and implementations in the registry's order."""
    for row in own_rows():
        for name, found in implementations(row).items():
            for dtype, cases in cases_by_dtype(row).items():
                reasons = [found.reason_against(attr) for attr in cases]
                why = "; ".join(dict.fromkeys(reason for reason in reasons if reason is not None))
                yield Covered(row.kernel_type.name, name, dtype, None in reasons, why)


def own_rows() -> list[type[KernelAttr]]:
    """The rows with names of their own, not those that are made when they are met."""
    found = [row for row in rows.values() if row.implemented_as is None and any(True for _ in row.sweep())]
    return sorted(found, key=lambda row: row.__module__)  # in whatever order the families were imported


def cases_by_dtype(row: type[KernelAttr]) -> dict[str, list[KernelAttr]]:
    """The cases that run everywhere."""
    found: dict[str, list[KernelAttr]] = {}
    for case in row.sweep():
        if "ci" in case.tags:
            found.setdefault(str(case.attr.fields().get("dtype", "-")), []).append(case.attr)
    return dict(sorted(found.items()))


def page_lines() -> Iterator[str]:
    """As a table in Markdown, the same on every machine: the dtypes of our implementations of our kernels."""
    own = {row: _own_names(row) for row in own_rows() if row.__module__.startswith("jitkernels.")}
    names = sorted({*itertools.chain(*own.values())}, key=lambda name: (name == "refer", name != "gen", name))
    yield f"| kernel | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for row, known in own.items():
        dtypes = ", ".join(cases_by_dtype(row))
        cells = [dtypes if name in known else "" for name in names]
        yield f"| [{row.kernel_type.name}](#{row.kernel_type.name.lower()}) | {' | '.join(cells)} |"


def _own_names(row: type[KernelAttr]) -> set[str]:
    """The implementations that are none of another package's."""
    found = implementations(row).items()
    return {name for name, one in found if one.function.__module__.startswith("jitkernels.")}
