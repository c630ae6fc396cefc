"""LLVM's optimizer and code generator for this machine, through llvmlite."""

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import llvmlite.binding as llvm

from jitkernels.codegen import llvm_passes, module_link
from jitkernels.codegen.compile_job import CompileJob
from jitkernels.codegen.dump import dump_intermediates, dumps_intermediates
from jitkernels.core import cpu_target
from jitkernels.errors import BuildError


def features_of(target: cpu_target.Target, vector_bytes: int) -> str:
    """LLVM's feature string of a target, with vectors limited to `vector_bytes`."""
    known = sorted({*llvm.get_host_cpu_features(), *target.features})
    features = [f"{'+' if name in target.features else '-'}{name}" for name in known]
    if target.is_x86:  # LLVM warns about the option on other targets
        features.append("-prefer-256-bit" if vector_bytes >= 64 else "+prefer-256-bit")
    return ",".join(features)


def target_machine(vector_bytes: int, level: int = 3) -> Any:
    """The code generator for `cpu_target.target` with vectors of at most `vector_bytes`; level 0 compiles fastest."""
    return _target_machine(cpu_target.target(), vector_bytes, level)


@functools.cache
def _target_machine(target: cpu_target.Target, vector_bytes: int, level: int) -> Any:
    """Cached: it takes as long as a short function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = features_of(target, vector_bytes)
    # LLVM's loader puts code and constants wherever there is room, which may be far apart where a process has arrays of
    # gigabytes; it ends the process where a distance does not fit in 32 bits.
    reloc, model = ("static", "large") if target.is_x86 else ("pic", "default")
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.name, features=features, opt=level, reloc=reloc, codemodel=model
    )


def optimize(module: Any, target: Any, *, unrolls: bool = True, versions_strides: bool = True) -> None:
    """Run LLVM's O3 pipeline without SLP vectorization, which spoils register tiles and finds nothing in loops.

    Calls stay whole until they are inlined: split for constants that come from a branch, as in
    ``err = old - (255.0 if old > 127.5 else 0.0)``, they would leave a jump in place of a selection.

    `unrolls`: allow loop unrolling, which doubles compile time. `versions_strides`: let loops along a stride that only
    the call knows load vectors where it is 1, and run element by element otherwise; if false, they gather.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_interleaving = True
    options.loop_unrolling = unrolls
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    with (
        nullcontext() if versions_strides else _option("enable-mem-access-versioning"),
        _option("callsite-splitting-duplication-threshold", inside="0", after="5"),
        _freed(builder.getModulePassManager()) as pipeline,
    ):
        pipeline.run(module, builder)


@contextmanager
def _freed(passes: Any) -> Iterator[Any]:
    """Free LLVM's passes afterwards: llvmlite leaks their 66 kB, as its class hides its own dispose function.

    They serve one module: the inliner moves its own passes into the pipeline.
    """
    dispose = getattr(llvm.ffi.lib, "LLVMPY_DisposeNewModulePassManger", None)
    if dispose is None or type(passes)._dispose is not llvm.ffi.ObjectRef._dispose:  # a fixed llvmlite frees them
        yield passes
        return
    try:
        yield passes
    finally:
        dispose(passes)
        passes.detach()


@functools.cache
def _passes(names: tuple[str, ...]) -> Any:
    """A pass manager of these passes; cached, since LLVM leaks some memory of each one."""
    manager = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(manager, f"add_{name}_pass")()
    return manager


def run_light_pipeline(module: Any, target: Any) -> None:
    """Run a light pipeline: promote allocas to registers, simplify control flow, inline ``alwaysinline`` functions.

    For code without loops to optimize: it takes a fraction of the time, and the code is as fast.
    """
    _run(llvm_passes.STRAIGHT_PASSES, module, target)


def fuse(module: Any, target: Any) -> None:
    """Inline ``alwaysinline`` functions, and promote allocas to registers before and after.

    For code written as it should run, such as vectorized loops: other passes find nothing that the code generator
    does not.
    """
    _run(llvm_passes.INLINING_PASSES, module, target)


def _run(names: tuple[str, ...], module: Any, target: Any) -> None:
    """Run passes. The pass builder is new each time, since it refers to data that is freed after a run."""
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    _passes(names).run(module, llvm.create_pass_builder(target, options))


def object_of(job: CompileJob) -> bytes:
    """Return the object file of a job, in which only its externals may be undefined; or bitcode.

    Raises BuildError if LLVM rejects the code, or if it exports or calls anything else.
    """
    first, *others = module_link.parts_of(job.name, *job.parts, *job.apart, *job.optimized)
    joined = others[len(job.parts) - 1 :]
    if job.visible is not None:
        module_link.link_in(job.name, first, others[: len(job.parts) - 1], job.visible)
    if job.hides_functions:
        _refuse_exported(first, job.symbol)
    forms = dict(job.forms)
    if dumps_intermediates():
        forms["unoptimized.ll"] = str(first)
    target = _target_machine(job.target or cpu_target.target(), job.vector_bytes, job.level)
    if job.passes == "optimize":
        optimize(first, target, unrolls=job.unrolls, versions_strides=job.versions_strides)
    else:
        {"straighten": run_light_pipeline, "fuse": fuse}[job.passes](first, target)
    if job.reduces and joined:
        _run(llvm_passes.STRENGTH_REDUCTION, first, target)
    for other in joined[: len(job.apart)]:
        fuse(other, target)
    if joined:
        module_link.link_in(job.name, first, joined, job.visible or [job.symbol])
        drop_unused(first)  # what other processors call may not compile for this one
    module_link.refuse_undefined(job.symbol, first, job.externals)
    if job.gives_bitcode:
        return bytes(first.as_bitcode())
    with nullcontext() if job.reduces and not joined else _without_strength_reduction():
        code = bytes(target.emit_object(first))
    if dumps_intermediates():
        forms |= {"ll": str(first), "s": target.emit_assembly(first)}
        dump_intermediates(job.symbol, forms, code)
    return code


def _refuse_exported(module: Any, symbol: str) -> None:
    """Raise BuildError if a function other than the entry is exported."""
    for function in module.functions:
        if not function.is_declaration and function.name != symbol and function.linkage.name == "external":
            raise BuildError(f"{function.name} is exported: expected only {symbol}")


def _without_strength_reduction() -> AbstractContextManager[None]:
    """Disable LLVM's loop strength reduction, which is 40 to 50 % of the code generation of loop nests.

    Their addresses are as good as they are, often better; loops that users wrote take up to 70 % longer without it.
    """
    return _option("disable-lsr", inside="true", after="false")


@contextmanager
def _option(name: str, inside: str = "false", after: str = "true") -> Iterator[None]:
    """Set an option of LLVM for a while. It is process-wide, so that no other thread may compile meanwhile."""
    with llvm.ffi.lib._lock:
        llvm.set_option("", f"-{name}={inside}")
        try:
            yield
        finally:
            llvm.set_option("", f"-{name}={after}")


def drop_unused(module: Any) -> None:
    """Remove dead global code."""
    _run(("global_dead_code_eliminate",), module, target_machine(64))


def portable_object(module: Any) -> bytes:
    """Return a position-independent object file of an optimized module, for system linkers."""
    target = cpu_target.target()
    model = "small" if target.is_x86 else "default"
    generator = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.name, features=features_of(target, 64), opt=3, reloc="pic", codemodel=model
    )
    return bytes(generator.emit_object(module))
