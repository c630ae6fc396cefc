"""Which implementation computes which kernel, for which dtypes, and whether it can be used here or why not."""

from collections.abc import Iterator
from typing import Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.records import record
from jitkernels.registry import all_rows, implementations


@record
class Covered:
    """An implementation of a kernel: by dtype, why it cannot be used here, or nothing where it can.

    `attrs` is how many attrs of the sweep it was asked about, for each dtype; a reason is that of the first that it
    cannot take, and says how many it takes where these are some.
    """

    kernel: str
    implementation: str
    reasons: dict[str, str]


def coverage() -> Iterator[Covered]:
    """One entry for each kernel and each of its implementations, in the order of the registry."""
    for row in sorted(all_rows(), key=lambda row: row.__module__):
        attrs = attrs_by_dtype(row)
        for name, found in implementations(row).items():
            reasons = {}
            for dtype, some in attrs.items():
                answers = [found.reason_against(attr) for attr in some]
                wrong = [answer for answer in answers if answer]
                reasons[dtype] = (
                    f"{len(some) - len(wrong)} of {len(some)} attrs: {wrong[0]}"
                    if wrong and len(wrong) < len(some)
                    else (wrong or [""])[0]
                )
            yield Covered(row.kernel_type.name, name, reasons)


def attrs_by_dtype(row: type[KernelAttr]) -> dict[str, list[KernelAttr]]:
    """The attrs of the sweep that run everywhere, by dtype."""
    found: dict[str, list[KernelAttr]] = {}
    for case in row.sweep():
        if "ci" in case.tags:
            found.setdefault(str(case.attr.fields().get("dtype", "")), []).append(case.attr)
    return found


def as_json(one: Covered) -> dict[str, Any]:
    """The same as plain values: None for a dtype that can be used, else why not."""
    reasons = {dtype: reason or None for dtype, reason in one.reasons.items()}
    return {"kernel": one.kernel, "implementation": one.implementation, "dtypes": reasons}
