"""From Python functions to LLVM bitcode: numba as front end, and nothing else of it.

This is the only module that imports numba, and it is imported only when the cache has no object of a source
that is written in Python. The names of numba that it leans on are verified before, in `numba_names`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import codegen as numba_codegen
from numba.core import compiler, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu_options import FastMathOptions
from numba.core.types import CPointer, ExternalFunction, Integer, int64, void, voidptr  # type: ignore[attr-defined]  # partly typed
from numba.extending import intrinsic

from jitkernels import dtypes
from jitkernels.errors import BuildError
from jitkernels.native.source import Module


class _Library(numba_codegen.AOTCodeLibrary):
    """Leaves the module as the front end made it: the pipeline of `codegen` is the only optimiser."""

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(numba_codegen.AOTCPUCodegen):
    _library_class = _Library


@dataclass(frozen=True)
class Prototype:
    """What a function of a module becomes: a C function of these arguments that returns ``int64_t``.

    One that returns nothing in Python returns 0.
    """

    arguments: tuple[str, ...]


def numba_type(text: str) -> Any:
    """numba's type for a C type: "float*" is a pointer to float32, "void" is None."""
    kind = dtypes.c_type(text)
    if kind.element is None:
        return voidptr if kind.is_pointer else void
    element = numba.from_dtype(kind.element.numpy)
    return CPointer(element) if kind.is_pointer else element


@intrinsic
def _offset(typing_context: Any, pointer: Any, elements: Any) -> Any:
    """`pointer + elements`, in elements of the pointed-to type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = context.cast(builder, arguments[1], signature.args[1], int64)
        return builder.gep(arguments[0], [index])

    return pointer(pointer, elements), generate


def _external(symbol: str, result: str, arguments: tuple[str, ...]) -> Any:
    return ExternalFunction(symbol, numba_type(result)(*map(numba_type, arguments)))


def _compiled(function: Any, flags: list[str]) -> Any:
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(fastmath=set(flags) or False, **options)(function)


def bitcode(name: str, module: Module, prototypes: Mapping[str, Prototype]) -> bytes:
    """Bitcode that defines the functions of a generated module, under the names and types of `prototypes`.

    Raises BuildError with numba's explanation when it cannot compile one of them.
    """
    namespace: dict[str, Any] = {
        "np": np,
        "pointer_offset": _offset,
        "external": _external,
        "compiled": _compiled,
    }
    for symbol in module.ir:
        # numba links each helper into its own engine as well, which ends the process for an unknown symbol.
        # Nothing is ever run there, so any address will do.
        llvm.add_symbol(symbol, id(None))
    exec(compile(module.text, f"<{name}>", "exec"), namespace)  # our own generated text
    with global_compiler_lock:
        target = registry.cpu_target
        context = target.target_context.subtarget(
            _internal_codegen=_Codegen("jitkernels", "host"), aot_mode=True
        )
        context.refresh()
        target.typing_context.refresh()
        library = context.codegen().create_library(name)
        for function, prototype in prototypes.items():
            _bridge(library, context, function, namespace[function], prototype)
        library.finalize()
        for definition in library._final_module.functions:
            if not definition.is_declaration and definition.name not in prototypes:
                definition.add_function_attribute("alwaysinline")
        return bytes(library._final_module.as_bitcode())


def _bridge(library: Any, context: Any, name: str, dispatcher: Any, prototype: Prototype) -> None:
    """Compile one function and add ``@name`` calling it, in the calling convention of C."""
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.nrt = False
    flags.fastmath = FastMathOptions(dispatcher.targetoptions.get("fastmath", False))
    arguments = [numba_type(text) for text in prototype.arguments]
    try:
        compiled = compiler.compile_extra(
            registry.cpu_target.typing_context, context, dispatcher.py_func, arguments, None, flags, {}
        )
    except numba.core.errors.NumbaError as error:
        raise BuildError(f"numba cannot compile {name} of {library.name}: {error}") from error
    library.add_linking_library(compiled.library)
    module = library.create_ir_module(f"{library.name}.{name}")
    convention = context.call_conv
    inner_type = convention.get_function_type(compiled.fndesc.restype, compiled.fndesc.argtypes)
    inner = ir.Function(module, inner_type, compiled.fndesc.llvm_func_name)
    values = [context.get_value_type(argument) for argument in arguments]
    outer = ir.Function(module, ir.FunctionType(ir.IntType(64), values), name)
    builder = ir.IRBuilder(outer.append_basic_block())
    result = compiled.fndesc.restype
    _, returned = convention.call_function(builder, inner, result, arguments, outer.args)
    if result is void:
        builder.ret(ir.IntType(64)(0))
    elif isinstance(result, Integer):
        builder.ret(context.cast(builder, returned, result, int64))
    else:
        raise BuildError(
            f"{name} of {library.name} returns {result}: expected nothing, or an int as its status"
        )
    for value, text in zip(outer.args, prototype.arguments, strict=True):
        if dtypes.c_type(text).is_restrict:
            value.add_attribute("noalias")
    outer.attributes.add("noinline")  # what ``noalias`` says of its arguments would be lost otherwise
    library.add_ir_module(module)
