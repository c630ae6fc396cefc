"""The reference page of all kernels, generated from the registry schemas, so that no fact is written twice."""

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementations, why_without
from jitkernels.attrs.schema.signature import Argument, Signature
from jitkernels.core import dtypes
from jitkernels.dispatch.docstrings import everyday_line
from jitkernels.tools.docgen import coverage

PAGE_HEADER = """\
# Kernels

Generated from the op schemas of the registry by `jitkernels docs --write docs/kernels.md`; do not edit.

Every kernel has an attr (what it is specialised by), an everyday function, and implementations in C calling
convention. C functions return 0, or the number of an error; arrays are C-contiguous and aligned. Which
implementations can be used depends on the machine: `jitkernels info --kernels` says so for all of them, and
`jitkernels explain KERNEL field=value...` for one attr.
Tolerances are how far any implementation may be from the true result, whatever finite numbers the arguments hold:
units in the last place (ulp), plus so many units of precision (eps: from 1 to the next number) of the sum of the
absolute terms that the result is made of.
"""

COVERAGE = """\
## Coverage

The dtypes for which there is an implementation of a kernel; whether it can be used on a machine, or why not, and for
which dtypes, says `jitkernels info --kernels`.
"""


def page() -> str:
    """Return the whole page, identical on every machine."""
    own = [schema for schema in coverage.own_schemas() if schema.__module__.startswith("jitkernels.")]
    listed = [f"* [{schema.kernel_type.name}](#{schema.kernel_type.name.lower()})" for schema in own]
    table = [COVERAGE, *coverage.page_lines()]
    return "\n".join([PAGE_HEADER, *listed, "", *table, "", *("\n".join(_section(schema)) for schema in own)])


def _section(schema: type[KernelAttr]) -> Iterator[str]:
    attr = _example(schema)
    yield f"## {schema.kernel_type.name}\n"
    yield f"{inspect.cleandoc(schema.__doc__ or '')}\n"
    yield "```python"
    yield f"{schema.__name__}({', '.join(map(_field, dataclasses.fields(schema)))})"  # type: ignore[arg-type]  # a dataclass
    yield f"jk.{everyday_line(schema)}"
    yield "```\n```c"
    yield f"{c_declaration(attr)}"
    yield "```\n"
    yield "| argument | role | shape | domain |\n|---|---|---|---|"
    for argument in schema.arrays:
        yield f"| {argument.name} | {_role(argument)} | {_shape(argument)} | {_domain(argument)} |"
    tolerance = attr.tolerance()
    yield f"\nThe tolerance below is that of `{attr.text()}`."
    yield (
        f"Tolerance: {tolerance.ulp:g} ulp"
        + (f" + {tolerance.terms:.3g} eps * terms, where terms is:" if tolerance.terms else ".")
    )
    if tolerance.terms:
        yield f"{inspect.getdoc(schema.absolute_terms)}\n"
    names = [
        name for name, entry in implementations(schema).items() if entry.function.__module__.startswith("jitkernels.")
    ]
    yield f"Implementations: {', '.join(names)}.\n"
    reason = why_without(schema, "numba")
    if reason:
        yield f"There is none by numba: {reason}.\n"


def _role(argument: Argument) -> str:
    read = f", read unless {argument.read} is 0" if argument.read else ""
    return argument.role + (", in place" if argument.in_place else "") + read


def _shape(argument: Argument) -> str:
    """Return a parameter's symbolic shape, with the flags that enable it or change its layout."""
    order = f", transposed with {argument.transposed}" if argument.transposed else ""
    return argument.symbols + order + (f", with {argument.when} only" if argument.when else "")


def _domain(argument: Argument) -> str:
    ends = [end if isinstance(end, str) else f"{end:g}" for end in argument.domain]
    return f"{ends[0]} .. {ends[1]}" if argument.role == "in" else ""


def _example(schema: type[KernelAttr]) -> KernelAttr:
    """Return the case with the most arguments of those tagged for every machine, and of these the largest."""
    everywhere = [case.attr for case in schema.sweep() if "ci" in case.tags]
    return max(everywhere, key=lambda attr: (len(attr.signature().c_arguments), _is_default(attr), attr.operations()))


def _is_default(attr: KernelAttr) -> bool:
    return attr.fields().get("dtype") == "float32"


def _field(field: "dataclasses.Field[Any]") -> str:
    kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    values = field.metadata.get("values")
    kind = " | ".join(map(repr, values)) if values else kind
    return f"{field.name}: {kind}" + ("" if field.default is dataclasses.MISSING else f" = {field.default!r}")


def c_declaration(attr: KernelAttr) -> str:
    """Return the C declaration of an attr's kernel: arrays, then integers, then pointers to floats."""
    signature: Signature = attr.signature()
    arrays = [
        f"{'' if array.output else 'const '}{dtypes.named(array.dtype).c} *{array.name}" for array in signature.arrays
    ]
    integers = [f"int64_t {name}" for name, _ in signature.integers]
    floats = [f"const double *{name}" for name, _ in signature.floats]
    return f"int64_t {attr.name}({', '.join([*arrays, *integers, *floats])});"
