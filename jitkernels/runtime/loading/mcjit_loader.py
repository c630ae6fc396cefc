"""LLVM's MCJIT loader, the fallback for formats and machines that `elf_loader` does not support."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from jitkernels.codegen.object_cache import objects_of
from jitkernels.codegen.source_protocol import External
from jitkernels.runtime.loading.elf_loader import LoadedObject

_engines: list[Any] = []


def _engine() -> Any:
    """The process's MCJIT engine; it owns the memory of every object and is never closed.

    A signal handler may need it while it is created: the first complete one stays.
    """
    if not _engines:
        engine = _new_engine()
        if not _engines:
            _engines.append(engine)
    return _engines[0]


def _new_engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


class _Defined(Mapping[str, int]):
    """Addresses of the engine's symbols, by name."""

    def __getitem__(self, name: str) -> int:
        address = int(_engine().get_global_value_address(name))
        if not address:
            raise KeyError(name)
        return address

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def mapped(content: bytes, symbol: str, externals: Sequence[External]) -> LoadedObject:
    """Load an object file with MCJIT, permanently. Raises LookupError if it does not define the symbol."""
    for external in externals:
        llvm.add_symbol(external.symbol, external.address())
    engine = _engine()
    for one in objects_of(content):
        engine.add_object_file(llvm.ObjectFileRef.from_data(one))
    engine.finalize_object()
    address = int(engine.get_function_address(symbol))
    if not address:
        raise LookupError(f"it does not define {symbol}")
    return LoadedObject(_Defined(), address)
