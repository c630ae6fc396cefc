"""One object file of a function and all that it calls, which any linker takes: position-independent, on one thread.

What is called is found by what externals say of their source. All of it becomes one module, of which nothing is visible
but the function, so that two bundles in one program do not meet.
"""

from collections.abc import Iterable

from jitkernels.errors import BundleError
from jitkernels.native import arenas, c_api, codegen, later, openmp
from jitkernels.native.link import LIBC, linked, refuse_undefined
from jitkernels.native.source import External, Source, symbol_of

NO_PYTHON = """define i32 @PyGILState_Ensure() { ret i32 0 }
define void @PyGILState_Release(i32 %state) { ret void }
define i32 @PyErr_CheckSignals() { ret i32 0 }
define ptr @PyEval_SaveThread() { ret ptr null }
define void @PyEval_RestoreThread(ptr %state) { ret void }
define i64 @PyThread_get_thread_ident() { ret i64 0 }
"""
"""What long loops ask for signals, where there is no Python that could raise for one."""
LENDING = f"""declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
define ptr @{arenas.LENT}(i64 %bytes) {{
  %more = add i64 %bytes, 63
  %size = and i64 %more, -64
  %piece = call ptr @aligned_alloc(i64 64, i64 %size)
  ret ptr %piece
}}
define void @{arenas.GIVEN_BACK}(ptr %piece) {{
  call void @free(ptr %piece)
  ret void
}}
"""
"""What lends memory where no other call could have left some."""
OF_SYSTEM = (*LIBC, "sched_yield")
"""What an object may leave to the C library."""


def object_of(name: str, entry: Source, symbol: str) -> bytes:
    """The object file of a source, of which `symbol` alone is visible. Raises BundleError where it needs a library."""
    parts: dict[str, str | bytes] = {}
    with codegen.as_bitcode():
        _add(parts, entry, symbol)
    module = linked(name, parts.values(), [symbol])
    codegen.drop_unused(module)
    refuse_undefined(name, module, OF_SYSTEM)
    return codegen.portable_object(module)


def _add(parts: dict[str, str | bytes], source: Source, symbol: str) -> None:
    """The modules of a source and of all that it calls, by the names of what they define."""
    if source.suffix != ".o":
        raise BundleError(f"{source.name} is no code of our own, which alone can be put into a bundle")
    parts[symbol] = source.object_code(symbol)
    _add_called(parts, source.externals)


def _add_called(parts: dict[str, str | bytes], externals: Iterable[External]) -> None:
    for external in externals:
        if external.symbol in openmp.SHARED:
            alone = openmp.alone_source()
            if openmp.SHARE not in parts:
                _add(parts, alone, openmp.SHARE)
            continue
        if external.symbol in c_api.SIGNALS:
            parts["signals"] = NO_PYTHON
            continue
        if external.symbol in (arenas.LENT, arenas.GIVEN_BACK):
            parts["lending"] = LENDING
            continue
        words = later.of_words(external.symbol)
        if words is not None:
            parts[external.symbol] = words.bound_text()
            if words.symbol not in parts:
                _add(parts, words.source, words.symbol)
            continue
        if external.source is None:
            if external.symbol not in OF_SYSTEM:
                raise BundleError(f"{external.symbol} is of this process, and cannot be put into a bundle")
            continue
        source = external.source()
        own = symbol_of(source)
        symbol = own if external.symbol.startswith(own) else external.symbol
        if symbol not in parts:
            _add(parts, source, symbol)
