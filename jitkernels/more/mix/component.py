"""Other kernels of the registry as functions that loop nests call, each by its address."""

from typing import Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import choose_component
from jitkernels.native import load
from jitkernels.native.source import External, symbol_of


def component(attr: KernelAttr) -> Any:
    """The best kernel of an attr that runs on one thread, as a C function for loop nests.

    Elementwise kernels take any length: the same object serves them all. What is best was measured before or is
    static; nothing is measured here.
    """
    choice = choose_component(attr)
    source = choice.implementation.function(attr, **choice.variant)
    arguments = attr.signature().c_arguments
    return External(symbol_of(source), "int64", arguments, lambda: load.address_of(source))
