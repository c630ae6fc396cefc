"""A fast implementation made from a kernel's reference: its NumPy text, traced and compiled as one loop nest.

It is the ``gen`` of a schema whose reference says that it ``compiles``, if none is written by hand. Its key is the text
of the reference, with all that this calls, and of the compiler: what is in the cache is found without tracing.
"""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import Implementation, implements
from jitkernels.attrs.schema.registry import Variant as Choice
from jitkernels.attrs.schema.schema_queries import specialised_extents_of, trailing_of
from jitkernels.codegen.function_ast import lines_of
from jitkernels.codegen.numba_functions import numba_version
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import DeferredIR, references
from jitkernels.core import cpu_target
from jitkernels.core.canonical_text import canonical_text
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.core.hashing import sha256
from jitkernels.core.source_hash import state_of
from jitkernels.errors import BuildError
from jitkernels.microkernels.tuning_space import MAX_STREAMED_COST, STREAM_BYTES, STREAM_CANDIDATE_BYTES, widths_for

COMPILER = ("compiler", "microkernels/maths", "codegen/python")
"""What decides the code beside the reference."""
MIN_THREAD_WORK_OR_BYTES = 65536
"""Operations, or bytes, that a thread gets at least."""
UNROLLS, LONGER = (2, 4, 1), (4, 2, 1)
"""Vectors that a step of the loop takes; the first is the static choice, LONGER that of narrow vectors."""
ACROSS, REDUCED = (4, 8, 2), (8, 4, 2)
"""The same of steps down columns, and where columns are reduced: so much of each row that memory is read in runs."""


def range_kernel(
    attr: KernelAttr,
    reference: Callable[..., None],
    unroll: int,
    vector_bytes: int,
    stream: bool,
    parallel: bool,
    backend: str = "native",
) -> RangeKernel:
    """The range kernel of a schema's reference, which runs over the first extent of its last array.

    `backend`: the code generator that makes it, as of `JitConfig`.
    """
    schema, signature, fields = type(attr), attr.signature(), attr.fields()
    ones = _ones(attr)
    arguments = [argument for argument in schema.arrays if argument.when is None or fields[argument.when]]
    along = _along(schema)
    static = {name: value for name, value in fields.items() if type(value) is not int and name not in schema.floats}
    own = tuple(array.dtype for array in signature.arrays)

    def make(reading: tuple[str, ...]) -> str:
        from jitkernels.compiler.capture.trace_reference import graph_of
        from jitkernels.compiler.ir.builder import UnsupportedError
        from jitkernels.compiler.lowering.kernel_body import body_of
        from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule

        dtypes = (*reading, *own[len(reading) :])
        try:
            graph, scope = graph_of(reference, arguments, dtypes, fields, schema.floats, ones)
        except (UnsupportedError, TypeError, ValueError) as error:
            raise BuildError(f"{schema.__name__}: the reference cannot be compiled: {error}") from error
        chosen = NestSchedule(vector_bytes, unroll, int(stream))
        return body_of(graph, scope, len(arguments), along, chosen, backend)

    key = [
        f"; {schema.__name__} {static}, {len(arguments)} arrays, along {along}"
        + "".join(f", {name} is 1" for name in ones),
        f"; {unroll} vectors at once{', streaming stores' if stream else ''}",
        text_of(reference),
    ]
    if backend == "numba":
        key.append(f"; by numba {numba_version()}")
    converts = len(set(own)) == 1
    return range_kernel_along(attr, along, key, make, vector_bytes, parallel=parallel, converts=converts)


def range_kernel_along(
    attr: KernelAttr,
    along: str,
    key: Sequence[str],
    make: Callable[[tuple[str, ...]], str],
    vector_bytes: int,
    *,
    parallel: bool,
    converts: bool = False,
) -> RangeKernel:
    """A range kernel over one extent, whose LLVM IR the compiler makes of what the `key` says."""
    signature = attr.signature()
    return RangeKernel(
        "_".join([attr.name, *([attr.fields()["dtype"]] if "dtype" in attr.fields() else [])]),
        signature.c_arguments,
        DeferredIR("\n".join([*key, f"; by the compiler {compiler()}"]), make),
        extent=signature.index(along),
        block=_block(attr, along) if parallel else 1,
        parallel=parallel,
        vector_bytes=vector_bytes,
        reads_first=True,  # each step of a nest reads all that it needs before it writes
        converts=converts,
    )


def variants(attr: KernelAttr) -> list[Choice]:
    """Vectors for each step, their width, threads where two of them get two blocks each, streaming stores."""
    return variants_along(attr, _along(type(attr)))


def variants_along(attr: KernelAttr, along: str) -> list[Choice]:
    """The same for a nest over some extent."""
    blocks = attr.fields()[along] // _block(attr, along)
    widest, unrolls = cpu_target.target().widths[0], unrolls_of(attr)
    streams = _streams(attr)
    return [
        {"unroll": unroll, "vector_bytes": width, "stream": stream, "parallel": parallel}
        for parallel in ((False, True) if blocks >= 4 else (False,))
        for stream in streams
        for width in widths_for(attr)
        for unroll in unrolls
        if (width == widest or unroll > 1) and not (stream and (width != widest or unroll == 1))
    ]


def _streams(attr: KernelAttr) -> tuple[bool, ...]:
    """Whether to store results by streaming stores; the first is the static choice.

    As for nests of programs, large results are streamed. Besides, those of arrays that take a third of the L3 cache:
    it goes on holding operands where results do not displace them, other cores and virtual machines have their share
    of it, and it is no faster than memory where both are written. On a Zen 3 with 32 MB, copies between arrays of 6 MB
    take three quarters of the time, of 8 MB half.
    """
    arrays, outputs = attr.signature().arrays, attr.signature().outputs
    if max(array.nbytes for array in arrays) < STREAM_CANDIDATE_BYTES:
        return (False,)
    elements = max(math.prod(array.shape) for array in arrays)
    every = sum(array.nbytes for array in arrays)
    is_large = 3 * every >= cpu_target.l3_cache_bytes() or min(array.nbytes for array in outputs) >= STREAM_BYTES
    return (True, False) if is_large and attr.operations() < MAX_STREAMED_COST * elements else (False, True)


def unrolls_of(attr: KernelAttr) -> tuple[int, ...]:
    """Vectors that a step takes; the first is the static choice.

    A step of 128 bytes hides the latency of polynomials, if registers hold what it loads and stores: on Zen 3 four
    vectors take a seventh less time than two for exp, tanh and log, and a quarter more for Adam with its seven arrays.
    """
    trailing, target = trailing_of(type(attr)), cpu_target.target()
    if trailing is None:
        arrays, result = attr.signature().arrays, attr.signature().arrays[-1]
        is_narrow = target.vector_bytes < CACHE_LINE_BYTES and LONGER[0] * len(arrays) <= target.registers
        is_short = len(result.shape) > 1 and result.shape[-1] < LONGER[0] * target.lanes(result.dtype)
        return LONGER if is_narrow and not is_short else UNROLLS
    first, *_, last = attr.signature().arrays
    vectors = attr.fields()[trailing] * first.numpy.itemsize // target.vector_bytes
    wide = REDUCED if len(last.shape) < len(first.shape) else ACROSS
    return wide if vectors >= wide[0] else ACROSS if vectors >= ACROSS[0] else UNROLLS


def register(
    schema: type[KernelAttr],
    reference: Callable[..., None],
    others: AbstractSet[str] = frozenset(),
    by_hand: Implementation | None = None,
) -> None:
    """Give a schema the implementation ``gen`` that its reference makes; that of some dtypes is written by hand."""

    def made(
        attr: KernelAttr, unroll: int = UNROLLS[0], vector_bytes: int = 64, stream: bool = False, parallel: bool = False
    ) -> RangeKernel:
        return range_kernel(attr, reference, unroll, vector_bytes, stream, parallel)

    if by_hand is None:
        implements(schema, name="gen", variants=variants)(made)
        return
    written = by_hand

    def gen(attr: KernelAttr, **variant: Any) -> RangeKernel:
        found: RangeKernel = (written.function if attr.fields()["dtype"] in others else made)(attr, **variant)
        return found

    def of_both(attr: KernelAttr) -> Sequence[Choice]:
        return (written.variants if attr.fields()["dtype"] in others else variants)(attr)

    implements(schema, name="gen", variants=of_both)(gen)


def register_numba(
    schema: type[KernelAttr], reference: Callable[..., None], others: AbstractSet[str] = frozenset()
) -> None:
    """Give a schema the implementation ``numba``: its reference's loops printed as Python, which numba compiles.

    `others` are the dtypes of which the reference does not compile.
    """

    def numba(attr: KernelAttr, parallel: bool = False) -> RangeKernel:
        return range_kernel(attr, reference, UNROLLS[0], 64, False, parallel, "numba")

    def can_be_used(attr: KernelAttr) -> bool | str:
        fields = attr.fields()
        if fields["dtype"] in others:
            return f"its reference does not compile for {fields['dtype']}"
        if fields.get("remain", 1) != 1:
            return (
                "printed loops reduce columns element by element: not the schema's error bound, nor its signs of zeros"
            )
        return numba_is_there(attr)

    implements(schema, name="numba", can_be_used=can_be_used, variants=numba_variants)(numba)


def numba_variants(attr: KernelAttr) -> list[Choice]:
    """One thread, and several where two of them get two blocks each: what else there is LLVM decides."""
    blocks = attr.fields()[_along(type(attr))] // _block(attr, _along(type(attr)))
    return [{}, {"parallel": True}] if blocks >= 4 else [{}]


def numba_is_there(attr: KernelAttr) -> bool | str:  # it serves every attr
    """Whether numba is installed; code that is in the cache runs without importing it."""
    return numba_version() != "absent" or "numba is not installed"


def _ones(attr: KernelAttr) -> tuple[str, ...]:
    """Extents that are 1, for which there are nests of their own: such loops are over other elements."""
    return tuple(name for name in specialised_extents_of(type(attr)) if attr.fields()[name] == 1)


def _along(schema: type[KernelAttr]) -> str:
    """The extent that threads share: the first one of the last array."""
    return schema.arrays[-1].extents[0].symbols[0]


def _block(attr: KernelAttr, along: str) -> int:
    """Steps that a thread gets at least, a power of two so that few objects serve all shapes."""
    nbytes = sum(array.nbytes for array in attr.signature().arrays)
    work = max(attr.operations(), nbytes) / max(attr.fields()[along], 1)
    return 1 << max(int(MIN_THREAD_WORK_OR_BYTES / max(work, 1)), 1).bit_length() - 1


def compiler() -> str:
    """What tells one state of the compiler's own text from another."""
    return state_of(*COMPILER)[:16]


@functools.cache
def text_of(function: Callable[..., Any]) -> str:
    """A function and what it uses, but for NumPy."""
    found: dict[Callable[..., Any], str] = {}
    remaining = [function]
    while remaining:
        one = remaining.pop()
        if one in found:
            continue
        uses = references(one, {*one.__code__.co_names, *one.__code__.co_freevars})
        lines, _ = lines_of(one.__code__)
        named = [f"{name} = {canonical_text(value, _shown)}\n" for name, value in uses.items() if value is not np]
        found[one] = "".join([*named, *lines])
        remaining += [value for value in uses.values() if inspect.isfunction(value)]
    return "\n".join(found.values())


def _shown(value: Any) -> str:
    """What stands for a value: the text of a function follows, that of a module is that of its file."""
    if inspect.isfunction(value):
        return str(value.__qualname__)
    if inspect.ismodule(value):
        file = getattr(value, "__file__", None)
        return value.__name__ if file is None else sha256(Path(file).read_bytes()).hexdigest()
    return repr(value)
