"""From the text of a loop nest to an object file: numba as front end, LLVM's optimiser and code generator.

This is the only module that imports numba, and it is imported only when the cache has no object.
"""

from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import codegen as numba_codegen
from numba.core import compiler, registry
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu_options import FastMathOptions
from numba.core.types import CPointer, ExternalFunction, float32, float64, int32, int64, void, voidptr  # type: ignore[attr-defined]  # partly typed
from numba.extending import intrinsic

from jitkernels.errors import BuildError
from jitkernels.native import codegen
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import symbol_of

RUNTIME = ("jk_team", "jk_parallel", "omp_get_thread_num", "omp_get_num_threads")
LIBC = ("aligned_alloc", "free", "memcpy", "memset", "memmove")
SCALARS = {"float": float32, "double": float64, "int32": int32, "int64": int64}


class _Library(numba_codegen.AOTCodeLibrary):
    """Leaves the module as the front end made it: the pipeline of `object_code` is the only optimiser."""

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(numba_codegen.AOTCPUCodegen):
    _library_class = _Library


def c_type(name: str) -> Any:
    """numba's type for a C type: "float*" is a pointer to float32, "void" is None."""
    if name == "void":
        return void
    if name.endswith("*"):
        return CPointer(SCALARS[name[:-1]]) if name[:-1] in SCALARS else voidptr
    return SCALARS[name]


@intrinsic
def _offset(typing_context: Any, pointer: Any, elements: Any) -> Any:
    """`pointer + elements`, in elements of the pointed-to type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = context.cast(builder, arguments[1], signature.args[1], int64)
        return builder.gep(arguments[0], [index])

    return pointer(pointer, elements), generate


def _external(symbol: str, result: str, arguments: tuple[str, ...]) -> Any:
    return ExternalFunction(symbol, c_type(result)(*map(c_type, arguments)))


def _compiled(function: Any, flags: list[str]) -> Any:
    options = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(fastmath=set(flags) or False, **options)(function)


def object_code(nest: LoopNest) -> bytes:
    """The object file of a loop nest: one entry, no undefined symbol besides its externals."""
    namespace: dict[str, Any] = {
        "np": np,
        "pointer_offset": _offset,
        "external": _external,
        "compiled": _compiled,
    }
    for name in nest.module.ir:
        # numba links each helper into its own engine as well, which ends the process for an unknown symbol.
        # Nothing is ever run there, so any address will do.
        llvm.add_symbol(name, id(None))
    exec(compile(nest.module.text, f"<{nest.name}>", "exec"), namespace)  # our own generated text
    symbol = symbol_of(nest)
    with global_compiler_lock:
        module = _front_end(nest, namespace)
        module.link_in(llvm.parse_assembly(nest.entry.replace("@entry(", f"@{symbol}(")))
        for function in nest.module.ir.values():
            module.link_in(llvm.parse_assembly(function.text))
        _prepare(module, symbol, {function.symbol for function in nest.module.ir.values()})
        unoptimised = str(module)
        target = codegen.target_machine(nest.vector_bytes)
        codegen.optimise(module, target)
        _refuse_undefined(module, nest)
        assembly = target.emit_assembly(module)
        code = bytes(target.emit_object(module))
        forms = {"py": nest.text, "unoptimised.ll": unoptimised, "ll": str(module), "s": assembly}
        codegen.keep_intermediates(symbol, forms, code)
        return code


def _front_end(nest: LoopNest, namespace: dict[str, Any]) -> Any:
    """numba's LLVM module of the body and the check, each behind a function of plain C arguments."""
    target = registry.cpu_target
    context = target.target_context.subtarget(_internal_codegen=_Codegen("jitkernels", "host"), aot_mode=True)
    context.refresh()
    target.typing_context.refresh()
    arguments = [c_type(argument) for argument in nest.arguments]
    workspace = [CPointer(_element(nest))] if nest.workspace else []
    library = context.codegen().create_library(nest.name)
    ranged = [*arguments, *workspace, int64, int64]
    _bridge(library, context, "body", namespace["body"], ranged, void, nest.parallel)
    if nest.check is not None:
        _bridge(library, context, "check", namespace["check"], arguments, int64)
    library.finalize()
    return library._final_module


def _element(nest: LoopNest) -> Any:
    """Element type of the workspace: that of the first floating-point array."""
    floats = [argument for argument in nest.arguments if argument in ("float*", "double*")]
    return SCALARS[floats[0][:-1]] if floats else float64


def _bridge(
    library: Any,
    context: Any,
    name: str,
    dispatcher: Any,
    arguments: list[Any],
    result: Any,
    parallel: bool = False,
) -> None:
    """Compile one function and add ``@name`` calling it, in the calling convention of C."""
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.nrt = False
    flags.fastmath = FastMathOptions(dispatcher.targetoptions.get("fastmath", False))
    try:
        compiled = compiler.compile_extra(
            registry.cpu_target.typing_context, context, dispatcher.py_func, arguments, result, flags, {}
        )
    except numba.core.errors.NumbaError as error:
        raise BuildError(f"numba cannot compile {name} of {library.name}: {error}") from error
    library.add_linking_library(compiled.library)
    module = library.create_ir_module(f"{library.name}.{name}")
    convention = context.call_conv
    inner_type = convention.get_function_type(compiled.fndesc.restype, compiled.fndesc.argtypes)
    inner = ir.Function(module, inner_type, compiled.fndesc.llvm_func_name)
    values = [context.get_value_type(argument) for argument in arguments]
    outer = ir.Function(
        module, ir.FunctionType(ir.VoidType() if result is void else ir.IntType(64), values), name
    )
    builder = ir.IRBuilder(outer.append_basic_block())
    _, returned = convention.call_function(builder, inner, result, arguments, outer.args)
    builder.ret_void() if result is void else builder.ret(returned)
    for argument in outer.args:
        if isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")
    outer.attributes.add("noinline" if name == "check" or parallel else "alwaysinline")
    library.add_ir_module(module)


def _prepare(module: Any, symbol: str, own: set[str]) -> None:
    """Make everything but the entry internal, and inline all of numba's functions into ``@body``."""
    for function in module.functions:
        if function.is_declaration or function.name == symbol:
            continue
        function.linkage = "internal"
        if function.name not in own and function.name not in ("part", "region", "body", "check"):
            function.add_function_attribute("alwaysinline")
    for variable in module.global_variables:
        if variable.linkage not in (llvm.Linkage.internal, llvm.Linkage.private):
            variable.linkage = "internal"


def _refuse_undefined(module: Any, nest: LoopNest) -> None:
    """An object may call only what the loader will give it."""
    allowed = {*RUNTIME, *LIBC, *(external.symbol for external in nest.externals)}
    for function in module.functions:
        if function.is_declaration and not function.name.startswith("llvm.") and function.name not in allowed:
            raise BuildError(
                f"the loop nest {nest.name} calls {function.name}, which is not an external of its own; "
                "vector maths comes from jitkernels.gen.math, not from numpy"
            )
