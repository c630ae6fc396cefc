"""The machine code of a source, one for all sources of the same text, however many there are.

A thousand size classes come to a few dozen loop nests. An implementation makes a new one for each class, with functions
of its own, and to make its text takes half a millisecond. So a nest is recognised by what its text would be made from,
and the first of its kind stands for all: there is one text, one hash and one object.
"""

from jitkernels.kept import kept_property
from jitkernels.native import load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import Source, symbol_of

BUILD, LOAD = 0.15, 0.002
"""Seconds that an object costs, by experience: from its source, and from the cache."""


class Code:
    """What a source becomes in this process, each part when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @kept_property
    def symbol(self) -> str:
        """The unique name of the entry."""
        return symbol_of(self.source)

    @kept_property
    def address(self) -> int:
        """Of the entry. Raises BuildError when it cannot be built or loaded."""
        return load.address_of(self.source)

    @property
    def is_loaded(self) -> bool:
        return "address" in self.__dict__

    @property
    def seconds(self) -> float:
        """How long it takes to have it: loading at least."""
        return LOAD if self.is_loaded or load.is_built(self.source) else BUILD


_known: dict[str, Code] = {}


def code_of(source: Source) -> Code:
    """The code of a source: that of the first one of the same text, where this can be told without making it.

    Nests of exact sizes are made for one attr each: those are not kept.
    """
    if type(source) is not LoopNest or source.exact:
        return Code(source)
    if source.identity is None:
        return Code(source)
    symbol = symbol_of(source)
    return _known.get(symbol) or _known.setdefault(symbol, Code(source))
