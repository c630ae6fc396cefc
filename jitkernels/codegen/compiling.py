"""Compilation by LLVM, in this process or in a helper process, as ``JITKERNELS_COMPILER`` says."""

from collections.abc import Callable
from contextvars import ContextVar

from jitkernels.codegen.compile_job import CompileJob, completed
from jitkernels.core import settings

taker: ContextVar[Callable[[CompileJob], None] | None] = ContextVar("taker", default=None)
"""What takes jobs in place of LLVM."""


class HandedOverError(Exception):
    """The job was given to `taker`."""


def compiled(job: CompileJob) -> bytes:
    """Return the object file of a job; inside of `as_bitcode`, bitcode. Raises BuildError if LLVM rejects the code.

    Raises HandedOverError where another process is going to compile it.
    """
    job = completed(job)
    take = taker.get()
    if take is not None:
        take(job)
        raise HandedOverError
    if settings.read("JITKERNELS_COMPILER") == "process":
        from jitkernels.codegen import compiler_process

        code = compiler_process.compiled(job)
        if code is not None:
            return code
    from jitkernels.codegen import llvm_backend

    return llvm_backend.object_of(job)
