"""The names inside numba that `compile` leans on, looked for before it is imported.

Most are private: a new numba may rename them, and the error should say so and not be a traceback.
"""

import importlib
import inspect

from jitkernels import machine
from jitkernels.errors import BuildError

NAMES = (
    "numba.core.codegen:AOTCPUCodegen._library_class",
    "numba.core.codegen:AOTCPUCodegen.create_library",
    "numba.core.codegen:AOTCodeLibrary._optimize_final_module",
    "numba.core.codegen:AOTCodeLibrary.add_ir_module",
    "numba.core.codegen:AOTCodeLibrary.add_linking_library",
    "numba.core.codegen:AOTCodeLibrary.create_ir_module",
    "numba.core.codegen:AOTCodeLibrary.finalize",
    "numba.core.compiler:Flags.error_model",
    "numba.core.compiler:Flags.fastmath",
    "numba.core.compiler:Flags.no_cfunc_wrapper",
    "numba.core.compiler:Flags.no_compile",
    "numba.core.compiler:Flags.no_cpython_wrapper",
    "numba.core.compiler:Flags.nrt",
    "numba.core.compiler:compile_extra",
    "numba.core.compiler_lock:global_compiler_lock",
    "numba.core.cpu_options:FastMathOptions",
    "numba.core.errors:NumbaError",
    "numba.core.registry:cpu_target.target_context.call_conv.call_function",
    "numba.core.registry:cpu_target.target_context.call_conv.get_function_type",
    "numba.core.registry:cpu_target.target_context.codegen",
    "numba.core.registry:cpu_target.target_context.get_value_type",
    "numba.core.registry:cpu_target.target_context.refresh",
    "numba.core.registry:cpu_target.target_context.subtarget",
    "numba.core.registry:cpu_target.typing_context.refresh",
    "numba.core.types:CPointer",
    "numba.core.types:ExternalFunction",
    "numba.core.types:Integer",
    "numba.extending:intrinsic",
    "numba:from_dtype",
    "numba:njit",
)
COMPILE_EXTRA = ("typingctx", "targetctx", "func", "args", "return_type", "flags", "locals")
"""The parameters of ``compile_extra``, which is called with one argument for each."""


def verify() -> None:
    """Raise BuildError naming what of `NAMES` this numba lacks."""
    missing = [name for name in NAMES if not _exists(name)]
    if not missing:
        from numba.core.compiler import compile_extra

        parameters = tuple(inspect.signature(compile_extra).parameters)[: len(COMPILE_EXTRA)]
        if parameters != COMPILE_EXTRA:
            missing = [f"numba.core.compiler:compile_extra({', '.join(COMPILE_EXTRA)})"]
    if missing:
        raise BuildError(
            f"numba {machine.version('numba')} lacks {', '.join(missing)}, which this version of jitkernels "
            "needs to compile loops written in Python: install another version of numba"
        )


def _exists(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True
