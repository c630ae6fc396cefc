"""A loop nest: the source of one C function that runs a Python loop over a range, serial or in parallel."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from jitkernels.native import entry, threads
from jitkernels.native.source import External, Module

FLAGS = ("nsz", "arcp", "contract", "afn", "reassoc")
"""Fast-math flags of loops by default: sums may be reordered, NaN and infinity keep their meaning."""


@dataclass(frozen=True)
class LoopNest:
    """The C function ``int64_t name(arguments)`` made from the Python function `body`.

    `body` takes the arguments (pointers, then integers), then ``workspace`` if `workspace` is not 0, then
    ``begin, end``: a part of the range 0..extent, where `extent` is the index of an integer argument. The
    parts that threads get begin at multiples of `block`. `check`, if given, takes the arguments and returns
    0 or a status; a status other than 0 is returned before `body` writes anything.

    `workspace` is the size in bytes of a 64-byte aligned scratch area, one per running thread, kept between
    calls. `vector_bytes` limits the vector registers that LLVM may use. `parallel` asks for OpenMP threads
    when there are at least two blocks for each.
    """

    name: str
    arguments: tuple[str, ...]
    body: Callable[..., None]
    extent: int
    block: int = 1
    parallel: bool = False
    workspace: int = 0
    check: Callable[..., int] | None = None
    flags: tuple[str, ...] = FLAGS
    vector_bytes: int = 64

    @functools.cached_property
    def module(self) -> Module:
        """The generated Python module; its names ``body`` and ``check`` are what gets compiled."""
        module = Module()
        module.define("body", self.body, self.flags)
        if self.check is not None:
            module.define("check", self.check, ())
        return module

    @property
    def externals(self) -> tuple[External, ...]:
        own = tuple(self.module.externals.values())
        return (*own, *threads.externals()) if self.parallel else own

    @functools.cached_property
    def entry(self) -> str:
        """LLVM IR of the entry, named ``@entry``."""
        return entry.ir(
            self.arguments,
            extent=self.extent,
            block=self.block,
            parallel=self.parallel,
            workspace=self.workspace,
            check=self.check is not None,
        )

    @functools.cached_property
    def text(self) -> str:
        """Everything that decides the machine code, readable."""
        functions = "\n".join(function.text for function in self.module.ir.values())
        settings = f"# {self.name}: vectors of {self.vector_bytes} bytes\n"
        return f"{settings}{self.module.text}\n'''LLVM IR\n{self.entry}\n{functions}\n'''\n"
