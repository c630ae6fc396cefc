"""LLVM's optimiser and code generator for this machine, through llvmlite alone."""

from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from jitkernels import machine, settings
from jitkernels.disk import say_once
from jitkernels.native.source import External


@dataclass(frozen=True)
class IRSource:
    """Functions written in LLVM IR alone; ``@entry`` in the text stands for the symbol of the source."""

    name: str
    text: str
    externals: tuple[External, ...] = ()


def target_machine(vector_bytes: int) -> Any:
    """The code generator for the host, limited to vectors of so many bytes."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    present = machine.cpu_features()
    features = [f"{'+' if name in present else '-'}{name}" for name in sorted(llvm.get_host_cpu_features())]
    features.append("-prefer-256-bit" if vector_bytes >= 64 else "+prefer-256-bit")
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=machine.cpu_name(), features=",".join(features), opt=3, reloc="pic", codemodel="default"
    )


def optimise(module: Any, target: Any) -> None:
    """LLVM's level 3 pipeline. The SLP vectoriser is off: it spoils register tiles and finds nothing in loops."""
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)


def object_code(source: IRSource, symbol: str) -> bytes:
    """The object file of functions written in LLVM IR."""
    module = llvm.parse_assembly(source.text.replace("@entry(", f"@{symbol}("))
    module.verify()
    target = target_machine(64)
    optimise(module, target)
    code = bytes(target.emit_object(module))
    keep_intermediates(symbol, {"ll": str(module), "s": target.emit_assembly(module)}, code)
    return code


def keep_intermediates(name: str, forms: dict[str, str], code: bytes) -> None:
    """Write Python, LLVM IR, assembly and object side by side if ``JITKERNELS_KEEP_INTERM`` asks for it."""
    if settings.read("JITKERNELS_KEEP_INTERM") == "0":
        return
    try:
        place = machine.work_directory()
        for suffix, text in forms.items():
            (place / f"{name}.{suffix}").write_text(text)
        (place / f"{name}.o").write_bytes(code)
    except OSError as error:
        say_once("intermediates", f"cannot keep intermediate files ({error}): continuing without them")
