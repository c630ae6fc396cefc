"""Functions that are objects of their own: what seldom runs is made once, and not for each expression that may call it.

It takes the compiler longer than all else: what is left of huge arguments of `sin` four times as long as `sin` itself.
"""

import functools

from jitkernels.native import load
from jitkernels.native.ir import HASTY, IRSource
from jitkernels.native.language.lanes import Definition, Library
from jitkernels.native.source import External

_addresses: dict[str, int] = {}


def externals(library: Library) -> tuple[External, ...]:
    """What a module links to that has these functions of a library as objects."""
    return tuple(
        External(
            made.symbol[2:-1], "void", (), functools.partial(_address, made), functools.partial(_source, made)
        )
        for made in (library.alone or {}).values()
    )


def _address(made: Definition) -> int:
    """Where a function is, which has all that it calls inside. Its symbol says what it is, and what they are."""
    if made.symbol not in _addresses:
        _addresses[made.symbol] = load.address_of(_source(made))
    return _addresses[made.symbol]


def _source(made: Definition) -> IRSource:
    inside = Library()
    inside.need(made)
    text = made.text.replace("define private ", "define ", 1).replace(made.symbol, "@entry", 1)
    return IRSource(made.symbol[2:].partition(".")[0], f"{HASTY}{inside.text}{text}\n")
