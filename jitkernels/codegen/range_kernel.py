"""Range kernels: the source of a C function that runs a loop over a range, and of one that runs a part of it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from inspect import isfunction
from typing import TYPE_CHECKING, Any, ClassVar

from jitkernels.codegen import entry_points, error_status, numba_functions, workspace_memory
from jitkernels.codegen.cache_key import Identity
from jitkernels.codegen.compile_job import CompileJob
from jitkernels.codegen.compiling import compiled
from jitkernels.codegen.dump import dumps_intermediates
from jitkernels.codegen.parameters import described
from jitkernels.codegen.source_protocol import DeferredIR, External, Module
from jitkernels.core import dtypes, hooks, operand_forms
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.canonical_text import UnlikeError
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.core.hashing import sha256
from jitkernels.errors import BuildError

FLAGS = ("nsz", "arcp", "contract", "afn", "reassoc")
"""Fast-math flags of loops by default: sums may be reordered, NaN and infinity keep their meaning."""

Code = Callable[..., Any] | DeferredIR | str | bytes
"""A Python function in the language of `jitkernels.codegen.python.kernel_module`, LLVM IR as text, or LLVM bitcode."""


@frozen_dataclass
class RangeKernel:
    """The C function ``int64_t name(arguments)`` made from the loop `body`.

    `body` takes the arguments (pointers, then integers), then the workspace if there is one, then
    ``begin, end``: a part of the range 0..extent, where `extent` is the index of an integer argument, or of
    several whose product it is, times `splits`. It returns nothing, or the status of what it called, 0 if that is
    well. Parts begin at multiples of `block` and are never empty; where `block` is the whole extent there is one part.

    With `names`, those of `arguments` and then those of arrays that are absent (`Signature.names`), all functions
    take what they want of these and of what is described below, by name (`jitkernels.codegen.parameters`).

    `check`, if given, takes the arguments and returns 0 or a status; a status other than 0 is returned before
    `body` writes anything. LLVM code defines them as ``i64 @body(...)`` and ``i64 @check(...)``; what it calls
    beside the C library is in `calls`.

    `exact` says that sizes are constants of the code. Any other kernel is right for whatever its integer
    arguments say, since one object serves every size of a class.

    `workspace` is the size in bytes of a 64-byte aligned scratch area of elements `workspace_dtype`, one per
    running thread, kept between calls; or a function of the integer arguments, begin and end in the language of bodies,
    which gives that size. `vector_bytes` limits the vector registers that LLVM may use.
    `parallel` asks for threads when there are at least two blocks for each. With `max_blocks`, the blocks of a long
    range are so much larger than `block` that there are no more: one object serves all extents, where a block that
    depends on the attr makes an object for each size class.
    `together`, in place of it, is a function of the integer arguments, begin and end in the language of bodies, which
    says how many threads are worth it. All of them are given the whole range and one workspace, and behind begin and
    end ``words, thread, team_size``: what `jitkernels.microkernels.team_barrier` takes, their number, and how many
    there are. There may be one alone, and some may come late or never. A function `workspace` takes the team's size
    before begin and end.

    Nothing is assumed of pointers but what ``restrict`` in `arguments` says. Without it LLVM compares
    addresses before each loop, and where an output is the very input it runs scalar code. `reads_first`
    promises that each element is read for the last time before that element is written, in whatever order
    elements are taken: such a body may be compiled as if all pointers were apart. No compiler can tell the
    difference as long as it does not read an element twice where the body reads it once, which LLVM does
    for constants only.

    `converts` promises that `body` turns each element that it reads into the type of what it writes, so that it is
    right for inputs of other dtypes as well (see `reading`), as long as they are apart from the outputs.

    `straight` says that the loops are written as they should be, tiles in LLVM IR and calls of them, so that LLVM has
    nothing to make of them: it is built in two thirds of the time then.

    `unrolls`: LLVM may unroll loops, which takes up to half of the compile time, and pays where short bodies run hot.

    `parts`: the words of functions that are built when a call first needs them (`runtime.loading.lazy_link`). `check`
    requests those that a call lacks; who calls a kernel without checking loads all of them with it.

    `pitched` promises that `body` writes outputs with whatever pitch its integers say (`Argument.pitch`), and nothing
    between their runs.
    """

    name: str
    arguments: tuple[str, ...]
    body: Code
    extent: int | tuple[int, ...]
    splits: int = 1
    block: int = 1
    max_blocks: int = 0
    parallel: bool = False
    together: Callable[..., Any] | None = None
    workspace: int | Callable[..., Any] = 0
    workspace_dtype: str = ""
    check: Code | None = None
    flags: tuple[str, ...] = FLAGS
    vector_bytes: int = 64
    reads_first: bool = False
    exact: bool = False
    converts: bool = False
    straight: bool = False
    unrolls: bool = True
    pitched: bool = False
    calls: tuple[External, ...] = ()
    parts: tuple[External, ...] = ()
    names: tuple[str, ...] = ()
    suffix: ClassVar[str] = ".o"
    has_range: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.workspace and self.workspace_dtype not in dtypes.TABLE:
            raise BuildError(
                f"the range kernel {self.name} has a workspace: expected workspace_dtype to be one of "
                f"{', '.join(dtypes.TABLE)}, got {self.workspace_dtype!r}"
            )

    def reading(self, names: Sequence[str]) -> "RangeKernel":
        """The same kernel for inputs of these dtypes or operand forms (`core.operand_forms`), which it converts."""
        inputs = tuple(f"{operand_forms.dtype_of(name)}*" for name in names)
        body = self.body
        if isinstance(body, DeferredIR):
            body = DeferredIR(body.key, body.make, tuple(names))
        return replace(
            self,
            body=body,
            name="_".join((self.name, "of", *names)),
            arguments=inputs + self.arguments[len(inputs) :],
            flags=tuple(flag for flag in self.flags if flag != "nsz"),  # -1 * 0 is -0.0, also of integers
        )

    @unlocked_cached_property
    def module(self) -> Module:
        """The generated Python module of those of ``body``, ``check`` and ``workspace`` that are Python functions."""
        module = Module()
        if callable(self.body):
            module.define("body", self.body, self.flags)
        if callable(self.check):
            module.define("check", self.check, ())
        if callable(self.workspace):
            module.define("needed", self.workspace, ())
        if self.together is not None:
            module.define("members", self.together, ())
        return module

    @unlocked_cached_property
    def identity(self) -> Identity | None:
        """The bytecode key; None where only the text identifies the kernel."""
        return self._identified()

    def _identified(self) -> Identity | None:
        """As `identity`, computed again. `block` matters for threads only; `max_blocks` is in the entry."""
        fields = [
            (name, getattr(self, name))
            for name in FIELDS
            if name != "max_blocks" and (name != "block" or self.parallel)
        ]
        try:
            return Identity([*fields, ("entry", self.entry), ("parameters", self._parameters)])
        except UnlikeError:
            return None

    @property
    def own_arguments(self) -> tuple[str, ...]:
        """Names of the arguments of `body` behind the kernel's own."""
        team = ("words", "thread", "team_size") if self.together else ()
        return (*(("workspace",) if self.workspace else ()), "begin", "end", *team)

    @unlocked_cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        """The names of what `body`, `check`, `workspace` and `together` may take, in order."""
        if not self.names:
            return dict.fromkeys(("body", "check", "workspace", "together"), ())
        arguments, absent = self.names[: len(self.arguments)], self.names[len(self.arguments) :]
        integers = tuple(name for name, kind in zip(arguments, self.arguments, strict=True) if kind == "int64")
        team = ("team_size",) if self.together else ()
        return {
            "body": (*arguments, *self.own_arguments, *absent),
            "check": (*arguments, *absent),
            "workspace": (*integers, *team, "begin", "end"),
            "together": (*integers, "begin", "end"),
        }

    @property
    def _parameters(self) -> str:
        """What the functions take by name, as text. Raises BuildError for what there is not."""
        functions = [(getattr(self, name), names) for name, names in self._names.items() if names]
        return "; ".join(described(function, names) for function, names in functions if isfunction(function))

    @property
    def externals(self) -> tuple[External, ...]:
        called = self.identity.called if self.identity else self.module.externals.values()
        is_pooled = callable(self.workspace) or self.workspace > workspace_memory.LARGE_BYTES
        own = (*called, *self.calls, *self.parts, *(hooks.pooled_memory() if is_pooled else ()))
        return (*own, *hooks.parallel_runtime()) if self.parallel or self.together else own

    @unlocked_cached_property
    def entry(self) -> str:
        """LLVM IR of the functions around the body, named ``@entry...``."""
        return entry_points.ir(
            self.arguments,
            extent=entry_points.RangeExtent(
                (self.extent,) if isinstance(self.extent, int) else self.extent, self.splits
            ),
            blocks=entry_points.Blocks(self.block, self.max_blocks) if self.parallel else None,
            workspace=workspace_memory.SIZED if callable(self.workspace) else self.workspace,
            no_memory=error_status.no_memory_for(self.name) if self.workspace else 0,
            check=self.check is not None,
            together=self.together is not None,
        )

    @unlocked_cached_property
    def text(self) -> str:
        """Everything that determines the machine code, readable."""
        written_code = [code for code in (self.body, self.check) if code is not None and not callable(code)]
        llvm = [self.entry, *(function.text for function in self.module.ir.values()), *map(_readable, written_code)]
        return "\n".join(
            [
                f"# {self.name}({', '.join(self.arguments)}): vectors of {self.vector_bytes} bytes",
                *([f"# by name: {', '.join(self.names)}: {self._parameters}"] if self.names else []),
                f"# workspace of {self.workspace_dtype}" if self.workspace else "# no workspace",
                "# reads before it writes" if self.reads_first else "# reads and writes in any order",
                "# for exactly these sizes" if self.exact else "# for any sizes",
                *(["# straight"] if self.straight else []),
                *([] if self.unrolls else ["# not unrolled"]),
                *(f"# calls {called}" for called in self.calls),
                self.module.text,
                "'''LLVM IR",
                *llvm,
                "'''\n",
            ]
        )

    def object_code(self, symbol: str) -> bytes:
        """Compile to an object file: the entry, its range function, no undefined symbols but the externals."""
        _ = self.module  # raises the best error for an invalid function
        parts: list[str | bytes] = [self.entry.replace("@entry", f"@{symbol}")]
        if callable(self.body) or callable(self.check) or callable(self.workspace):
            parts.append(self._translated())
        parts += [code for code in (self.body, self.check) if isinstance(code, str | bytes)]
        if isinstance(self.body, DeferredIR):
            made = self.body.make(self.body.reading)
            parts.append(made)
            if numba_functions.MARK in made:
                from jitkernels.codegen import numba_lowering  # not for those who print no Python

                parts += numba_lowering.compiled_in(made, self.vector_bytes)
        is_made = isinstance(self.body, DeferredIR)
        passes = "fuse" if is_made else "straighten" if self.straight else "optimize"
        functions = [function.text for function in self.module.ir.values()]
        # LLVM's optimizer takes long for long straight-line code that is called, such as sorting networks.
        apart = tuple(text for text in functions if passes == "optimize" and _is_straight_line(text))
        parts += [text for text in functions if text not in apart]
        now = self._identified()
        if (now and now.text) != (self.identity and self.identity.text):
            raise BuildError(f"{self.name}: a value that its functions refer to has changed since it was made")
        return compiled(
            CompileJob(
                self.name,
                symbol,
                tuple(parts),
                tuple(external.symbol for external in self.externals),
                passes,
                visible=(symbol, f"{symbol}_range", f"{symbol}_check"),
                apart=apart,
                unrolls=self.unrolls,
                vector_bytes=self.vector_bytes,
                forms={"py": self.text} if dumps_intermediates() else {},
            )
        )

    def _translated(self) -> str:
        """LLVM IR of those of ``body``, ``check`` and ``workspace`` that are Python functions."""
        from jitkernels.codegen.python import kernel_module

        plain = self.arguments
        if self.reads_first:
            plain = tuple(text if "restrict" in text else text.replace("*", "* restrict") for text in plain)
        own = "" if self.together else " restrict"  # other threads of the team write to it as well
        scratch = (f"{self.workspace_dtype}*{own}",) if self.workspace else ()
        group = ("int64*", "int64", "int64") if self.together else ()
        integers = [text for text in plain if text == "int64"]
        program, names = kernel_module.KernelModule(self.name), self._names
        if callable(self.body):
            arguments = (*plain, *scratch, "int64", "int64", *group)
            program.export("body", self.body, arguments, self.flags, names["body"])
        if callable(self.check):
            program.export("check", self.check, plain, (), names["check"])
        if callable(self.workspace):
            arguments = (*integers, *group[2:], "int64", "int64")
            program.export("needed", self.workspace, arguments, (), names["workspace"])
        if self.together is not None:
            program.export("members", self.together, (*integers, "int64", "int64"), (), names["together"])
        return program.text


FIELDS = tuple(field.name for field in fields(RangeKernel))

if not TYPE_CHECKING:  # type checkers would take any name then

    def __getattr__(name: str) -> Any:
        """Return `RangeKernel` by its deprecated name LoopNest."""
        if name != "LoopNest":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn("the class LoopNest is called RangeKernel", DeprecationWarning, stacklevel=2)
        return RangeKernel


def _is_straight_line(text: str) -> bool:
    """Whether LLVM IR has neither loops nor functions to inline."""
    return " phi " not in text and " alwaysinline" not in text


def _readable(code: Code) -> str:
    if isinstance(code, bytes):
        return f"bitcode of SHA-256 {sha256(code).hexdigest()}"
    return code.text if isinstance(code, DeferredIR) else str(code)
