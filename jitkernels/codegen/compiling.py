"""Compilation by LLVM, in this process or in a helper process, as ``JITKERNELS_COMPILER`` says."""

from jitkernels.codegen.compile_job import CompileJob, completed
from jitkernels.core import settings


def compiled(job: CompileJob) -> bytes:
    """Return the object file of a job; inside of `as_bitcode`, bitcode. Raises BuildError if LLVM rejects the code."""
    job = completed(job)
    if settings.read("JITKERNELS_COMPILER") == "process":
        from jitkernels.codegen import compiler_process

        code = compiler_process.compiled(job)
        if code is not None:
            return code
    from jitkernels.codegen import llvm_backend

    return llvm_backend.object_of(job)
