"""From a source to the address of its machine code in this process; llvmlite maps the object, no numba."""

import functools
from typing import Any

import llvmlite.binding as llvm

from jitkernels.errors import BuildError
from jitkernels.locks import making
from jitkernels.native import cache, codegen
from jitkernels.native.source import External, Source, symbol_of

_loaded: dict[str, int] = {}


@functools.cache
def _engine() -> Any:
    """LLVM's in-process linker; it owns the memory of every object and is never closed."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


def address_of(source: Source) -> int:
    """Address of the entry of a source, building it if neither this process nor the cache has it.

    Raises BuildError when a loop nest cannot be compiled or an external cannot be found.
    """
    symbol = symbol_of(source)
    with making:
        if symbol not in _loaded:
            _link(source.externals)
            _loaded[symbol] = source.load(symbol) if hasattr(source, "load") else _map(source, symbol)
        return _loaded[symbol]


def _map(source: Source, symbol: str) -> int:
    content, path = cache.fetch(source.text, ".o", lambda: _object_code(source, symbol))
    engine = _engine()
    try:
        engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        engine.finalize_object()
    except RuntimeError as error:
        raise BuildError(
            f"cannot load the object of {source.name} ({path or 'not cached'}): {error}"
        ) from error
    address = int(engine.get_function_address(symbol))
    if not address:
        raise BuildError(f"the object of {source.name} ({path or 'not cached'}) does not define {symbol}")
    return address


def functions_of(source: Source, names: tuple[str, ...]) -> dict[str, int]:
    """Addresses of further functions and variables that an already loaded object defines."""
    address_of(source)
    return {name: int(_engine().get_global_value_address(name)) for name in names}


def _object_code(source: Source, symbol: str) -> bytes:
    if isinstance(source, codegen.IRSource):
        return codegen.object_code(source, symbol)
    from jitkernels.native import compile, loop_nest

    if not isinstance(source, loop_nest.LoopNest):
        raise BuildError(f"{source!r} is not a source that can be compiled")
    return compile.object_code(source)


def _link(externals: tuple[External, ...]) -> None:
    for external in externals:
        llvm.add_symbol(external.symbol, external.address())
