"""From a printed Python function to LLVM IR: numba types it, LLVM's optimizer makes its loops vectors.

Nothing here reads numba's own caches, and no code of numba's runtime is linked: a function takes pointers and integers,
allocates nothing and raises nothing.
"""

import functools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from jitkernels.codegen import llvm_backend, module_link
from jitkernels.codegen.numba_functions import PythonFunction, functions_in
from jitkernels.errors import BuildError

INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")


def compiled_in(text: str, vector_bytes: int = 64) -> list[str]:
    """LLVM IR of all functions that some LLVM text carries. Raises BuildError where numba is missing or refuses one."""
    return [lowered(one, vector_bytes) for one in functions_in(text)]


def lowered(function: PythonFunction, vector_bytes: int = 64) -> str:
    """LLVM IR that defines the symbol of a function, optimized. Raises BuildError where numba refuses it."""
    (text, *others), defined = _typed(function.text, function.arguments, _frozen(function), function.returns)
    text = _with_noalias(text, defined, function)
    module, *parts = module_link.parts_of(function.symbol, text, *others, function.definitions)
    module_link.link_in(function.symbol, module, parts, [function.symbol])
    with _many_checks():
        llvm_backend.optimize(module, llvm_backend.target_machine(vector_bytes))
    return str(module)


@contextmanager
def _many_checks() -> Iterator[None]:
    """Let LLVM compare the addresses of more arrays before a loop of vectors than the 8 pairs of its default.

    A kernel of four inputs and three outputs has 15 pairs. It is an option of the process: nobody else may compile
    meanwhile.
    """
    with llvm.ffi.lib._lock:
        llvm.set_option("", "-runtime-memory-check-threshold=64")
        try:
            yield
        finally:
            llvm.set_option("", "-runtime-memory-check-threshold=8")


def _frozen(function: PythonFunction) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    return tuple((name, kinds, dtype) for name, (kinds, dtype) in sorted(function.functions.items()))


def _with_noalias(text: str, defined: str, function: PythonFunction) -> str:
    """The text with the function's own symbol, and what is known of its pointers."""
    text = text.replace(defined, function.symbol)
    start = text.index(f"@{function.symbol}(" if f"@{function.symbol}(" in text else f'@"{function.symbol}"(')
    end = text.index("\n", start)
    head = text[start:end]
    for name in function.alone:
        head = head.replace(f"ptr %arg.{name},", f"ptr noalias %arg.{name},")
    return text[:start] + head + text[end:]


@functools.lru_cache(maxsize=256)
def _typed(
    text: str,
    arguments: tuple[tuple[str, str], ...],
    functions: tuple[tuple[str, tuple[str, ...], str], ...],
    returns: str,
) -> tuple[tuple[str, ...], str]:
    """LLVM IR of a function as numba types it and of what it calls, not yet optimized, and its symbol there."""
    try:
        from numba.core import compiler
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.errors import NumbaError
    except ImportError as error:
        raise BuildError(f"backend 'numba': {error}: install numba, or choose backend 'native'") from error
    namespace: dict[str, Any] = {"np": np, "nan": math.nan, "inf": math.inf, "float32": np.float32}
    namespace |= {name: getattr(np, name) for name in INTEGERS}
    namespace["float16"] = _half_constant()
    namespace |= {"float64": np.float64, "complex64": np.complex64, "complex128": np.complex128}
    for name, kinds, dtype in functions:
        namespace[name] = _called(name, kinds, dtype)
    exec(compile(text, "<printed by jitkernels>", "exec"), namespace)  # our own printer's text
    name = text[text.index("def ") + 4 : text.index("(")]
    given = tuple(_type_of(kind) for _, kind in arguments)
    with global_compiler_lock:
        typing, target = _target()
        typing.refresh()
        target.refresh()
        flags = compiler.Flags()
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.error_model, flags.nrt = "numpy", False
        try:
            made = compiler.compile_extra(
                typing,
                target,
                namespace[name],
                args=given,
                return_type=_number(returns or "void"),
                flags=flags,
                locals={},
                library=None,
            )
        except NumbaError as error:
            raise BuildError(f"numba refuses the printed function {name}: {error}\n{text}") from error
        return tuple(map(str, _modules(made.library))), made.fndesc.mangled_name


def _modules(library: Any) -> list[Any]:
    """The module of a function and those of what it calls, such as `min`."""
    found: dict[int, Any] = {}
    remaining = [library]
    while remaining:
        one = remaining.pop()
        if id(one) not in found:
            found[id(one)] = one
            remaining += one._linking_libraries
    return [one._final_module for one in found.values()]


@functools.cache
def _target() -> tuple[Any, Any]:
    """Numba's typing and target contexts for code without its runtime."""
    from numba.core import codegen as numba_codegen
    from numba.core.registry import cpu_target

    own = cpu_target.target_context.subtarget(
        _internal_codegen=numba_codegen.AOTCPUCodegen("jitkernels"), aot_mode=True
    )
    return cpu_target.typing_context, own


def _type_of(kind: str) -> Any:
    from numba.core import types

    known: Any = types  # whose stubs lack pointers
    if not kind.endswith("*"):
        return _number(kind)
    # Numba stores a bool in memory of bools as one bit, which its own type of pointers takes for a byte.
    return known.CPointer(known.uint8 if kind == "bool*" else _number(kind[:-1]))


def _number(dtype: str) -> Any:
    from numba.core import types

    return getattr(types, {"bool": "boolean", "float16": "uint16"}.get(dtype, dtype))


@functools.cache
def _called(name: str, kinds: tuple[str, ...], dtype: str) -> Any:
    """What numba calls as a function of the module that its code becomes a part of."""
    from numba.core import cgutils
    from numba.extending import intrinsic

    result, given = _number(dtype), tuple(map(_number, kinds))

    def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        taken = [context.get_value_type(kind) for kind in given]
        kind = ir.FunctionType(context.get_value_type(result), taken)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    def one(typing: Any, a: Any) -> Any:
        return result(*given), emitted

    def two(typing: Any, a: Any, b: Any) -> Any:
        return result(*given), emitted

    def three(typing: Any, a: Any, b: Any, c: Any) -> Any:
        return result(*given), emitted

    return intrinsic((one, two, three)[len(kinds) - 1])


@functools.cache
def _half_constant() -> Any:
    """The bits of a half-precision number that a constant is."""
    from numba.core import types
    from numba.extending import intrinsic

    def float16(typing: Any, value: Any) -> Any:
        def emitted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            half = builder.fptrunc(arguments[0], ir.HalfType())
            return builder.bitcast(half, ir.IntType(16))

        return types.uint16(types.float64), emitted

    return intrinsic(float16)


def is_available() -> str:
    """Why numba cannot be used here; nothing if it can."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        return str(error)
    return ""
