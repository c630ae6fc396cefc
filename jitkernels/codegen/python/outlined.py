"""Slow paths as separate objects: compiled once, and not for each expression that may call them.

They dominate compile time: argument reduction of huge arguments of `sin` takes four times as long as `sin` itself.
"""

import functools

from jitkernels.codegen.ir_source import UNOPTIMIZED, IRSource
from jitkernels.codegen.python.simd_library import Definition, Library
from jitkernels.codegen.source_protocol import External
from jitkernels.core import hooks
from jitkernels.core.c_symbols import symbol_address

_addresses: dict[str, int] = {}


def _of_doubles(name: str) -> External:
    """A function of the C library, from which generated code has its bits."""
    return External(f"jk_libm_{name}", "float64", ("float64",), functools.partial(symbol_address, name))


C_FUNCTIONS = {function.symbol: function for function in map(_of_doubles, ("exp", "log", "log1p"))}
"""Functions of the C library that slow paths may call, by the symbols that these link to."""


def externals(library: Library) -> tuple[External, ...]:
    """The external functions of a module that has a library's slow paths as separate objects."""
    return tuple(
        External(
            definition.symbol[2:-1],
            "void",
            (),
            functools.partial(_address, definition),
            functools.partial(_source, definition),
        )
        for definition in (library.alone or {}).values()
    )


def _address(definition: Definition) -> int:
    """The address of a slow path, which contains all that it calls. Its symbol identifies its content."""
    if definition.symbol not in _addresses:
        _addresses[definition.symbol] = hooks.address_of_source(_source(definition))
    return _addresses[definition.symbol]


def _source(definition: Definition) -> IRSource:
    inside = Library()
    inside.need(definition)
    text = definition.text.replace("define private ", "define ", 1).replace(definition.symbol, "@entry", 1)
    linked = tuple(function for symbol, function in C_FUNCTIONS.items() if symbol in inside.declared)
    return IRSource(definition.symbol[2:].partition(".")[0], f"{UNOPTIMIZED}{inside.text}{text}\n", linked)
