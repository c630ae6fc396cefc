"""The reference page of all kernels, generated from their rows: nothing about a kernel is written twice."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from jitkernels import dtypes
from jitkernels.attrs.base import KernelAttr, rows
from jitkernels.documentation import everyday_line
from jitkernels.registry import implementations
from jitkernels.signature import Signature

HEADER = """\
# Kernels

Generated from the rows of the registry by `jitkernels docs --write docs/kernels.md`; do not edit.

Every kernel has an attr (what it is specialised by), an everyday function, and implementations in C calling
convention. C functions return 0, or the number of an error; arrays are C-contiguous and aligned. Which
implementations can be used depends on the machine: `jitkernels explain KERNEL field=value...` says so.
Tolerances are how far any implementation may be from the true result, whatever finite numbers the arguments hold:
units in the last place (ulp), plus so many units of precision (eps: from 1 to the next number) of the sum of the
absolute terms that the result is made of.
"""


def page() -> str:
    """The whole page, the same on every machine."""
    own = [row for row in rows.values() if row.__module__.startswith("jitkernels.")]
    listed = [f"* [{row.kernel_type.name}](#{row.kernel_type.name.lower()})" for row in own]
    return "\n".join([HEADER, *listed, "", *("\n".join(_section(row)) for row in own)])


def _section(row: type[KernelAttr]) -> Iterator[str]:
    attr = _example(row)
    yield f"## {row.kernel_type.name}\n"
    yield f"{inspect.cleandoc(row.__doc__ or '')}\n"
    yield "```python"
    yield f"{row.__name__}({', '.join(map(_field, dataclasses.fields(row)))})"  # type: ignore[arg-type]  # a dataclass
    yield f"jk.{everyday_line(row)}"
    yield "```\n```c"
    yield f"{c_declaration(attr)}"
    yield "```\n"
    yield "| argument | role | shape | domain |\n|---|---|---|---|"
    for array in attr.signature().arrays:
        place = ", in place" if array.in_place else ""
        domain = f"{array.domain[0]:g} .. {array.domain[1]:g}" if array.role != "out" else ""
        yield f"| {array.name} | {array.role}{place} | {list(array.shape)} | {domain} |"
    tolerance = attr.tolerance()
    yield f"\nShapes and domains above, and the tolerance, are those of `{attr.text()}`."
    yield (
        f"Tolerance: {tolerance.ulp:g} ulp"
        + (f" + {tolerance.terms:.3g} eps * terms, where terms is:" if tolerance.terms else ".")
    )
    if tolerance.terms:
        yield f"{inspect.getdoc(row.absolute_terms)}\n"
    names = [
        name
        for name, found in implementations(row).items()
        if found.function.__module__.startswith("jitkernels.")
    ]
    yield f"Implementations: {', '.join(names)}.\n"


def _example(row: type[KernelAttr]) -> KernelAttr:
    """Of the cases that run everywhere the one with the most arguments, and of those the largest."""
    everywhere = [case.attr for case in row.sweep() if "ci" in case.tags]
    return max(
        everywhere, key=lambda attr: (len(attr.signature().c_arguments), _is_default(attr), attr.operations())
    )


def _is_default(attr: KernelAttr) -> bool:
    return attr.fields().get("dtype") == "float32"


def _field(field: "dataclasses.Field[Any]") -> str:
    kind = field.type if isinstance(field.type, str) else field.type.__name__
    values = field.metadata.get("values")
    kind = " | ".join(map(repr, values)) if values else kind
    return f"{field.name}: {kind}" + ("" if field.default is dataclasses.MISSING else f" = {field.default!r}")


def c_declaration(attr: KernelAttr) -> str:
    """The C function of an attr's kernel: arrays, then integers, then pointers to floats."""
    signature: Signature = attr.signature()
    arrays = [
        f"{'' if array.output else 'const '}{dtypes.named(array.dtype).c} *{array.name}"
        for array in signature.arrays
    ]
    integers = [f"int64_t {name}" for name, _ in signature.integers]
    floats = [f"const double *{name}" for name, _ in signature.floats]
    return f"int64_t {attr.name}({', '.join([*arrays, *integers, *floats])});"
