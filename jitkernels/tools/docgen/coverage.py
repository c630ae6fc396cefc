"""The coverage table: the implementations of each kernel, their dtypes, and whether they run here."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from jitkernels.attrs.schema.base import KernelAttr, schemas
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
    for schema in own_schemas():
        for name, entry in implementations(schema).items():
            for dtype, cases in cases_by_dtype(schema).items():
                reasons = [entry.reason_against(attr) for attr in cases]
                why = "; ".join(dict.fromkeys(reason for reason in reasons if reason is not None))
                yield Covered(schema.kernel_type.name, name, dtype, None in reasons, why)


def own_schemas() -> list[type[KernelAttr]]:
    """Return the named schemas, without the schemas that calls register on demand."""
    result = [
        schema for schema in schemas.values() if schema.implemented_as is None and any(True for _ in schema.sweep())
    ]
    return sorted(
        result, key=lambda schema: schema.__module__
    )  # the order in which families were imported must not matter


def cases_by_dtype(schema: type[KernelAttr]) -> dict[str, list[KernelAttr]]:
    """Return the cases tagged for every machine, by dtype."""
    cases: dict[str, list[KernelAttr]] = {}
    for case in schema.sweep():
        if "ci" in case.tags:
            cases.setdefault(str(case.attr.fields().get("dtype", "-")), []).append(case.attr)
    return dict(sorted(cases.items()))


def page_lines() -> Iterator[str]:
    """Return a Markdown table, identical on every machine: the dtypes of jitkernels' implementations of its kernels."""
    own = {schema: _own_names(schema) for schema in own_schemas() if schema.__module__.startswith("jitkernels.")}
    names = sorted({*itertools.chain(*own.values())}, key=lambda name: (name == "refer", name != "gen", name))
    yield f"| kernel | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for schema, known in own.items():
        dtypes = ", ".join(cases_by_dtype(schema))
        cells = [dtypes if name in known else "" for name in names]
        yield f"| [{schema.kernel_type.name}](#{schema.kernel_type.name.lower()}) | {' | '.join(cells)} |"


def _own_names(schema: type[KernelAttr]) -> set[str]:
    """Return the schema's implementations that come with jitkernels."""
    entries = implementations(schema).items()
    return {name for name, entry in entries if entry.function.__module__.startswith("jitkernels.")}
