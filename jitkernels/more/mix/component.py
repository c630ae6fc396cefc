"""Other kernels of the registry as functions that loop nests call, each by its address."""

from typing import Any

from jitkernels import registry
from jitkernels.attrs.base import KernelAttr
from jitkernels.native import load
from jitkernels.native.source import External, symbol_of


def component(attr: KernelAttr) -> Any:
    """The generated kernel of an attr as a C function for loop nests.

    Elementwise kernels take any length: the same object serves them all.
    """
    source = registry.implementation(type(attr), "gen").function(attr)
    arguments = attr.signature().c_arguments
    return External(symbol_of(source), "int64", arguments, lambda: load.address_of(source))
