"""Functions of the C library that generated code may call, by the symbols that it links to."""

from functools import partial

from jitkernels.codegen.source_protocol import External
from jitkernels.core.c_symbols import symbol_address


def _of_doubles(name: str) -> External:
    return External(f"jk_libm_{name}", "float64", ("float64",), partial(symbol_address, name))


FUNCTIONS = {function.symbol: function for function in map(_of_doubles, ("exp", "log", "log1p"))}
