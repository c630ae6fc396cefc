"""Sources written in LLVM IR. llvmlite is imported only when one is built."""

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from jitkernels.codegen.compile_job import CompileJob
from jitkernels.codegen.compiling import compiled
from jitkernels.codegen.source_protocol import External
from jitkernels.core.frozen_dataclass import frozen_dataclass

LIGHT_PIPELINE, UNOPTIMIZED = "; straight\n", "; unoptimized\n"


@frozen_dataclass
class IRSource:
    """Functions written in LLVM IR; ``@entry`` in the text is replaced by the symbol of the source.

    A text that begins with LIGHT_PIPELINE gets a light pass pipeline. One that begins with UNOPTIMIZED rarely runs, or
    waits most of the time: it compiles in a quarter of the time, and runs a third longer.
    """

    name: str
    text: str
    externals: tuple[External, ...] = ()
    suffix: ClassVar[str] = ".o"
    has_range: ClassVar[bool] = False

    def object_code(self, symbol: str) -> bytes:
        """Compile to an object file."""
        text, calls = (
            self.text.replace("@entry(", f"@{symbol}("),
            tuple(external.symbol for external in self.externals),
        )
        if self.text.startswith(UNOPTIMIZED):
            return compiled(CompileJob(self.name, symbol, (text,), calls, "fuse", level=0))
        passes = "straighten" if self.text.startswith(LIGHT_PIPELINE) else "optimize"
        return compiled(CompileJob(self.name, symbol, (text,), calls, passes))


@frozen_dataclass
class I64Source:
    """The source of code with a light pipeline, such as translated i64 functions: one object with several symbols.

    `text`: everything that determines the code; `ir` returns the LLVM IR, and is called only to build it.
    """

    name: str
    text: str
    ir: Callable[[], str] = field(compare=False, repr=False)
    externals: tuple[External, ...] = ()
    suffix: str = ".o"
    has_range: bool = False

    def object_code(self, symbol: str) -> bytes:
        """Compile to an object file."""
        text, calls = (
            self.ir().replace("@entry(", f"@{symbol}("),
            tuple(external.symbol for external in self.externals),
        )
        return compiled(CompileJob(self.name, symbol, (text,), calls, "straighten"))
