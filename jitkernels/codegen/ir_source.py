"""Sources written in LLVM IR. LLVM itself is imported when one has to be built, and not before."""

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from jitkernels.native.source import External
from jitkernels.records import record

STRAIGHT, HASTY = "; straight\n", "; hasty\n"


@record
class IRSource:
    """Functions written in LLVM IR alone; ``@entry`` in the text stands for the symbol of the source.

    A text that begins with STRAIGHT is code as it should be, so that LLVM has little to do. One that begins with HASTY
    seldom runs, or waits most of the time: it is made in a quarter of the time, and takes a third longer.
    """

    name: str
    text: str
    externals: tuple[External, ...] = ()
    suffix: ClassVar[str] = ".o"
    has_range: ClassVar[bool] = False

    def object_code(self, symbol: str) -> bytes:
        """The object file of the functions."""
        from jitkernels.native import codegen
        from jitkernels.native.link import parsed

        module = parsed(self.name, self.text.replace("@entry(", f"@{symbol}("))
        if self.text.startswith(HASTY):
            return codegen.finished(module, symbol, self.externals, improve=codegen.fuse, level=0)
        improve = codegen.straighten if self.text.startswith(STRAIGHT) else codegen.optimise
        return codegen.finished(module, symbol, self.externals, improve=improve)


@record
class WordSource:
    """The source of straight code, such as translated functions: one object that several names may be asked of.

    text: everything that decides the code; `ir` gives the code itself and is asked only when it must be built.
    """

    name: str
    text: str
    ir: Callable[[], str] = field(compare=False, repr=False)
    externals: tuple[External, ...] = ()
    suffix: str = ".o"
    has_range: bool = False

    def object_code(self, symbol: str) -> bytes:
        """The object file."""
        from jitkernels.native import codegen
        from jitkernels.native.link import parsed

        module = parsed(self.name, self.ir().replace("@entry(", f"@{symbol}("))
        return codegen.finished(module, symbol, self.externals, improve=codegen.straighten)
