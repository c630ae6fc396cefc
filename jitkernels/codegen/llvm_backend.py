"""LLVM's optimiser and code generator for this machine, through llvmlite alone."""

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import llvmlite.binding as llvm

from jitkernels import machine
from jitkernels.native import passes
from jitkernels.native.intermediates import keep_intermediates, keeps_intermediates
from jitkernels.native.link import refuse_undefined
from jitkernels.native.source import External

_gives_bitcode: ContextVar[bool] = ContextVar("gives_bitcode", default=False)


def features_of(target: machine.Target, vector_bytes: int) -> str:
    """LLVM's text for the features of a target, of whose vectors only those of so many bytes are used."""
    known = sorted({*llvm.get_host_cpu_features(), *target.features})
    features = [f"{'+' if name in target.features else '-'}{name}" for name in known]
    if target.is_x86:  # elsewhere LLVM does not know the word, and says so
        features.append("-prefer-256-bit" if vector_bytes >= 64 else "+prefer-256-bit")
    return ",".join(features)


def target_machine(vector_bytes: int, level: int = 3) -> Any:
    """The code generator for `machine.target`, limited to vectors of so many bytes; at level 0 it hurries."""
    return _target_machine(machine.target(), vector_bytes, level)


@functools.cache
def _target_machine(target: machine.Target, vector_bytes: int, level: int) -> Any:
    """Made once: it takes as long as a short function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = features_of(target, vector_bytes)
    # LLVM's loader puts code and constants wherever there is room, which may be far apart where a process has arrays of
    # gigabytes; it ends the process where a distance does not fit in 32 bits.
    reloc, model = ("static", "large") if target.is_x86 else ("pic", "default")
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.name, features=features, opt=level, reloc=reloc, codemodel=model
    )


def optimise(module: Any, target: Any, *, unrolls: bool = True) -> None:
    """LLVM's level 3 pipeline. The SLP vectoriser is off: it spoils register tiles and finds nothing in loops.

    `unrolls`: whether rounds of loops may stand several times in the code, which takes twice as long to compile.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_interleaving = True
    options.loop_unrolling = unrolls
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)


@functools.cache
def _passes(names: tuple[str, ...]) -> Any:
    """LLVM's passes of these names; made once, since LLVM keeps some memory of each that is made."""
    made = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(made, f"add_{name}_pass")()
    return made


def straighten(module: Any, target: Any) -> None:
    """Variables into registers, no step or branch too many, what says ``alwaysinline`` inlined; nothing more.

    For code without loops that LLVM could make more of: it takes a fraction of the time, and is not the slower for it.
    """
    _run(passes.STRAIGHT_PASSES, module, target)


def fuse(module: Any, target: Any) -> None:
    """What says ``alwaysinline`` inlined, and variables into registers; before it too, as it often is several times.

    For what is written as it should run, such as loops in vectors: no other pass finds anything in it that the code
    generator does not.
    """
    _run(passes.INLINING_PASSES, module, target)


def _run(names: tuple[str, ...], module: Any, target: Any) -> None:
    """Some passes. The builder is new, since it refers to what is gone after a run."""
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    _passes(names).run(module, llvm.create_pass_builder(target, options))


def finished(
    module: Any,
    symbol: str,
    externals: Iterable[External],
    vector_bytes: int = 64,
    improve: Callable[[Any, Any], None] = optimise,
    level: int = 3,
    *,
    reduces: bool = True,
    **forms: str,
) -> bytes:
    """The object file of a module, optimised, which may leave its externals undefined and nothing else.

    Inside of `as_bitcode`, LLVM's form of it.

    `level`: see `target_machine`; `reduces`: see `_without_reduction`. `forms` are what it was made from, by the suffix
    of the file that keeps them for those who ask.
    """
    if keeps_intermediates():
        forms["unoptimised.ll"] = str(module)
    target = target_machine(vector_bytes, level)
    improve(module, target)
    refuse_undefined(symbol, module, [external.symbol for external in externals])
    if _gives_bitcode.get():
        return bytes(module.as_bitcode())
    with nullcontext() if reduces else _without_reduction():
        code = bytes(target.emit_object(module))
    if keeps_intermediates():
        forms |= {"ll": str(module), "s": target.emit_assembly(module)}
        keep_intermediates(symbol, forms, code)
    return code


@contextmanager
def _without_reduction() -> Iterator[None]:
    """Let LLVM leave the addresses in loops as they are written: to look for better ones is 40 % of the code generator.

    Most of ours are as good; of 22 programs 6 run 8 to 15 % longer. It is an option of the process, so that nobody
    else may compile meanwhile.
    """
    with llvm.ffi.lib._lock:
        llvm.set_option("", "-disable-lsr=true")
        try:
            yield
        finally:
            llvm.set_option("", "-disable-lsr=false")


@contextmanager
def as_bitcode() -> Iterator[None]:
    """Let `finished` give what can be put together with other modules."""
    token = _gives_bitcode.set(True)
    try:
        yield
    finally:
        _gives_bitcode.reset(token)


def drop_unused(module: Any) -> None:
    """Take out what no visible function needs."""
    _run(("global_dead_code_eliminate",), module, target_machine(64))


def portable_object(module: Any) -> bytes:
    """The object file of a module that is optimised, for linkers: code that may lie anywhere, as they expect it."""
    target = machine.target()
    model = "small" if target.is_x86 else "default"
    maker = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.name, features=features_of(target, 64), opt=3, reloc="pic", codemodel=model
    )
    return bytes(maker.emit_object(module))
