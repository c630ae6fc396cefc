"""Checks that any implementation of any schema must pass, including implementations of other packages.

    import jitkernels as jk
    from jitkernels.tools import testing

    for attr in testing.attrs_around(jk.VMulAttr):
        for name in jk.get_all_candidates(attr):
            testing.check(attr, name)

A check raises AssertionError naming the kernel, its variant, and the first mismatch. A kernel that accesses
memory just outside its arrays ends the process: the arrays lie beside guard pages.
"""

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.dispatch.kernel import Kernel
from jitkernels.tools.testing.checks import (
    Function,
    check_aliased_arguments,
    check_bad_indices,
    check_data,
    check_special_values,
    check_values,
)
from jitkernels.tools.testing.data import kinds, special_values
from jitkernels.tools.testing.expected import Oracle, assert_close, upcast_reference
from jitkernels.tools.testing.guard_pages import Guarded
from jitkernels.tools.testing.guarded_workspace import guarded_workspaces
from jitkernels.tools.testing.kernel_calls import named
from jitkernels.tools.testing.rejected_arguments import check_rejections
from jitkernels.tools.testing.sizes import attrs_around, changed, ci_cases, flags, long_attrs, middle, middles

__all__ = [
    "Guarded",
    "Oracle",
    "assert_close",
    "attrs_around",
    "changed",
    "check",
    "check_aliased_arguments",
    "check_bad_indices",
    "check_data",
    "check_function",
    "check_rejections",
    "check_special_values",
    "check_values",
    "ci_cases",
    "flags",
    "guarded_workspaces",
    "kinds",
    "long_attrs",
    "middle",
    "middles",
    "named",
    "special_values",
    "upcast_reference",
]


def check(attr: KernelAttr, name: str, oracle: Oracle = upcast_reference) -> None:
    """Run every check on every variant of an implementation."""
    entry = implementation(type(attr), name)
    variants = entry.variants(attr)
    assert variants, f"{name} of {attr.name} has no variants"
    for variant in variants:
        kernel = Kernel(attr, entry, variant)
        check_function(attr, kernel.callable, oracle, label=repr(kernel))


def check_function(attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = "") -> None:
    """Run every check on a function that takes the arrays of a call."""
    check_values(attr, function, oracle, label=label)
    check_data(attr, {label: function}, oracle)
    check_aliased_arguments(attr, function, oracle, label=label)
    check_special_values(attr, function, oracle, label=label)
    check_bad_indices(attr, function, label=label)
