"""Parallel code generation: two modules of one source, compiled at the same time where a helper process is idle.

As LLVM's ``splitCodeGen``. The object is the same bytes whoever compiles the parts.
"""

from jitkernels.codegen import compile_ahead
from jitkernels.codegen.compile_job import CompileJob
from jitkernels.codegen.compiling import compiled
from jitkernels.codegen.object_bundle import bundled


def compiled_in_parts(first: CompileJob, second: CompileJob) -> bytes:
    """Compile two jobs, the first of which calls functions of the second, to one bundle.

    Raises BuildError if LLVM rejects the code.
    """
    compile_ahead.note_demand()
    ahead = compile_ahead.begun(lambda: compiled(second)) if compile_ahead.has_idle_helper() else None
    try:
        code = compiled(first)
    except BaseException:
        if ahead is not None:
            ahead.cancel()
        raise
    other = None if ahead is None else ahead.result()
    return bundled([code, compiled(second) if other is None else other])
