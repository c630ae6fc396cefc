"""The machine code of a source, shared by all sources with the same text.

A thousand size classes have a few dozen range kernels. An implementation makes a new source for each class, with new
function objects, and generating its text takes half a millisecond. So sources are compared by their bytecode keys,
and the first of each key serves all: there is one text, one hash and one object.
"""

from jitkernels.attrs.schema import kernel_impl
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Source, symbol_of
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.runtime.c_functions import CFunctionSource
from jitkernels.runtime.loading import loader

BUILD, LOAD = 0.15, 0.002
"""Typical seconds to build an object, and to load it from the cache."""


class Code:
    """The compiled form of a source in this process, computed lazily."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @unlocked_cached_property
    def symbol(self) -> str:
        """The unique name of the entry."""
        return symbol_of(self.source)

    @unlocked_cached_property
    def address(self) -> int:
        """The address of the entry. Raises BuildError if it cannot be built or loaded."""
        return loader.address_of(self.source)

    @property
    def is_loaded(self) -> bool:
        return "address" in self.__dict__

    @property
    def seconds(self) -> float:
        """The estimated time until it is loaded."""
        return LOAD if self.is_loaded or loader.is_built(self.source) else BUILD


_known: dict[str, Code] = {}
kernel_impl.source_of_c_function.append(CFunctionSource)


def code_of(source: Source) -> Code:
    """Return the code of a source, shared with the first source of the same key.

    Kernels of exact sizes are made for one attr each and are not shared.
    """
    if type(source) is not RangeKernel or source.exact:
        return Code(source)
    if source.identity is None:
        return Code(source)
    symbol = symbol_of(source)
    return _known.get(symbol) or _known.setdefault(symbol, Code(source))
