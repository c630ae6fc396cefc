"""Builds the compiled entry of a program: its arguments, results, guards and the segment that it runs."""

from collections.abc import Container, Sequence
from dataclasses import replace

import numpy as np

from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.dispatch import entry_point
from jitkernels.compiler.ir import access_map, builder, call_abi, dim_bounds, region_memory, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.symbolic_dims import Guard
from jitkernels.compiler.lowering.compiled_program import CompiledProgram, Segment, empty_segment
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import Nest
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.core.frozen_dataclass import record
from jitkernels.runtime import fp_status, vectorcall

NEVER = 2**62
"""A work limit that no call reaches: code that calls Python must hold the GIL."""


@record
class Entry:
    """The source of an entry, the source of its segment, and the largest work that runs with the GIL held, `most`."""

    source: module_text.Fused
    segment: module_text.Fused
    most: int


def caller(
    program: CompiledProgram,
    guards: Sequence[Guard],
    sources: Sequence[tuple[int, str]],
    reach: call_abi.Reach,
    *,
    word: int,
    is_tuple: bool,
    rebuilt: call_abi.Rebuilt | None = None,
    kinds: Sequence[str] = (),
    own: Container[int] = (),
) -> Entry | None:
    """The compiled entry of a program; None where the program has steps in Python.

    `sources`: for each input the step of `reach` that loads it, and its type if it is a number (see
    `call_abi.Argument`). The results are the outputs, in a tuple if `is_tuple`, or what `rebuilt` makes of such a
    tuple; Python numbers where `kinds` names their types. The segment's context slots start at `word`. `own`: the
    inputs that are constants of the code, whose addresses are in the context.
    """
    steps = program.steps or [empty_segment()]
    if len(steps) != 1 or not isinstance(steps[0], Segment) or _writes_before_checks(program):
        return None
    input_ids = {id(node) for node in program.graph.inputs}
    results = []
    for number, node in enumerate(program.graph.outputs):
        order = program.orders.get(node)
        if id(node) in input_ids:
            return None
        size = np.dtype(node.dtype).itemsize
        kind_name = kinds[number] if kinds else ""
        is_number = kind_name in call_abi.NUMBERS or (kind_name == "scalar" and rebuilt is not None)
        kind = kind_name if is_number else ""
        results.append(call_abi.Result(program.words[node], node.dtype, size, node.shape, order, kind))
    if len({one.word for one in results}) < len(results) or not (is_tuple or len(results) <= 1):
        return None
    segment = steps[0]
    arguments = [
        replace(_argument(program, node, segment), source=source, number=number, is_own=i in own)
        for i, (node, (source, number)) in enumerate(zip(program.graph.inputs, sources, strict=True))
    ]
    if any(one.is_written and one.repeats for one in arguments):
        return None
    times, work, more = dim_bounds.scale_and_offset(segment.work)
    caller = entry_point.Caller(
        arguments, results, program.arena, guards, program.symbols, len(program.words) + len(program.symbols) + 1, work,
        word, is_tuple, reach, rebuilt, segment.polls, _flags_raised(program),
    )  # fmt: skip
    # O0: the entry's run time hardly depends on optimization, its compile time does, as it has many branches.
    source = module_text.module_source("call", caller.text(), 64, vectorcall.externals(), level=0)
    most = NEVER if segment.calls_python else max((entry_point.LONG - more) // times, -NEVER)
    return Entry(source, segment.source, most)


def _flags_raised(program: CompiledProgram) -> tuple[int, bool] | None:
    """The floating-point flags that each call raises, and whether they replace those of the computation."""
    if not program.raised:
        return None
    return fp_status.flags_of(program.raised), not program.reports_fp_errors


def _writes_before_checks(program: CompiledProgram) -> bool:
    """Whether a step writes to arguments before a later check that may bail out."""
    inputs = set(program.graph.inputs)
    nests = [nest for step in program.steps if isinstance(step, Segment) for nest in step.nests]
    written = False
    for nest in nests:
        targets = [store.target for store in nest.stores] if isinstance(nest, Nest) else [nest.node]
        if isinstance(nest, KernelCall | NumpyCall):
            targets = nest.items
        if isinstance(nest, NumpyCall) and written:
            return True
        if isinstance(nest, Flow):
            targets = [nest.node.inputs[place] for place in region_memory.updated_operands(nest.node)]
            writes_here = any(memory_of(one, program.shared) in inputs for one in targets)
            if region_memory.may_bail_out(nest.node) and (written or writes_here):
                return True
        if written and any(one in program.graph.checks for one in targets):
            return True
        written = written or any(memory_of(one, program.shared) in inputs for one in targets)
    return False


def _argument(program: CompiledProgram, node: Node, segment: Segment) -> call_abi.Argument:
    strides = node.options.get("strides") or builder.contiguous(node.shape)
    whole = symbolic_dims.key_of_shape(strides) == symbolic_dims.key_of_shape(builder.contiguous(node.shape))
    nests = [nest for nest in segment.nests if isinstance(nest, Nest)]
    alone = len(segment.nests) == 1 and len(nests) == 1 and not nests[0].rows and not program.orders
    same_place = all(
        node not in region.access_maps
        or (
            symbolic_dims.key_of_shape(region.root.shape) == symbolic_dims.key_of_shape(node.shape)
            and list(region.access_maps[node]) == [access_map.key_of(access_map.identity(node.ndim))]
        )
        for nest in nests
        for region in nest.regions
    ) and not any(base is node for base in program.reshaped.values())
    size = np.dtype(node.dtype).itemsize
    return call_abi.Argument(
        program.words[node],
        node.dtype,
        size,
        node.shape,
        tuple(strides),
        whole,
        whole and alone and same_place,
        is_written=any(target is node for target, _ in program.graph.writes),
    )
