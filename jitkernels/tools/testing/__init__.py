"""What a kernel must do, as checks for any implementation of any row, those of other packages included.

    import jitkernels as jk
    from jitkernels import testing

    for attr in testing.attrs_around(jk.VMulAttr):
        for name in jk.get_all_candidates(attr):
            testing.check(attr, name)

A check raises AssertionError with the kernel, its variant, and the first thing that is wrong. A kernel that
touches memory just outside its arrays ends the process: there is no byte there to report about.
"""

from jitkernels.attrs.base import KernelAttr
from jitkernels.kernel import Kernel
from jitkernels.registry import implementation
from jitkernels.testing.arenas import guarded_arenas
from jitkernels.testing.arguments import check_refusals
from jitkernels.testing.calls import named
from jitkernels.testing.checks import (
    Function,
    check_bad_indices,
    check_data,
    check_in_place,
    check_special_values,
    check_values,
)
from jitkernels.testing.data import kinds, special_values
from jitkernels.testing.guards import Guarded
from jitkernels.testing.sizes import attrs_around, changed, ci_cases, flags, long_attrs, middle, middles
from jitkernels.testing.truth import Oracle, assert_close, upcast_reference

__all__ = [
    "Guarded",
    "Oracle",
    "assert_close",
    "attrs_around",
    "changed",
    "check",
    "check_bad_indices",
    "check_data",
    "check_function",
    "check_in_place",
    "check_refusals",
    "check_special_values",
    "check_values",
    "ci_cases",
    "flags",
    "guarded_arenas",
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
    found = implementation(type(attr), name)
    variants = found.variants(attr)
    assert variants, f"{name} of {attr.name} has no variants"
    for variant in variants:
        kernel = Kernel(attr, found, variant)
        check_function(attr, kernel.callable, oracle, label=repr(kernel))


def check_function(
    attr: KernelAttr, function: Function, oracle: Oracle = upcast_reference, *, label: str = ""
) -> None:
    """Run every check on anything that takes the arrays of a call."""
    check_values(attr, function, oracle, label=label)
    check_data(attr, {label: function}, oracle)
    check_in_place(attr, function, oracle, label=label)
    check_special_values(attr, function, oracle, label=label)
    check_bad_indices(attr, function, label=label)
