"""Builds the compiled entry of a program: its arguments, results, guards and the segment that it runs."""

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitkernels.compiler.capture.pytree.call_signature import CallSignature, FlatCall
from jitkernels.compiler.capture.pytree.result_spec import ResultPlan
from jitkernels.compiler.capture.trace_context import INT64
from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.dispatch import entry_point
from jitkernels.compiler.dispatch.argument_access import ArgumentAccess, find_access
from jitkernels.compiler.dispatch.object_guards import UnreachableError
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir import access_map, builder, call_abi, dim_bounds, region_memory, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.symbolic_dims import Guard
from jitkernels.compiler.lowering.compiled_program import CompiledProgram, Segment, empty_segment
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.runtime import fp_status, vectorcall

MAX_EXACT_DOUBLE = 2**53
"""Largest int below which all ints are exact as doubles."""
NEVER = 2**62
"""A work limit that no call reaches: code that calls Python must hold the GIL."""


@frozen_dataclass
class EntrySource:
    """The source of an entry, the source of its segment, and the largest work that runs with the GIL held."""

    source: module_text.Fused
    segment: module_text.Fused
    max_work_with_gil: int


@frozen_dataclass
class EntryInterface:
    """What an entry checks, loads and returns.

    `guards` on extents; `sources`: for each input the step of `reach` that loads it, and its type if it is a number
    (see `call_abi.Argument`). The results are the outputs, in a tuple if `is_tuple`, or what `rebuilt` makes of such a
    tuple; Python numbers where `kinds` names their types, and arrays transposed by `axes`. The segment's context slots
    start at `word`. `own`: the inputs that are constants of the code, whose addresses are in the context.
    """

    guards: Sequence[Guard]
    sources: Sequence[tuple[int, str]]
    reach: call_abi.Reach
    word: int
    is_tuple: bool
    rebuilt: call_abi.Rebuilt | None
    kinds: Sequence[str]
    axes: Sequence[tuple[int, ...] | None]
    own: Container[int]


def build_entry(
    specialization: Specialization, call: FlatCall, signature: CallSignature
) -> tuple[ArgumentAccess, EntrySource]:
    """Build the compiled entry for calls of this form, and how it reaches their arguments.

    Raises UnreachableError if they must enter through Python.
    """
    access = find_access(call, signature, specialization.constants)
    plan, program = specialization.plan, specialization.program
    if plan is None or not isinstance(program, CompiledProgram):
        raise UnreachableError("code that NumPy runs operation by operation")
    if specialization.reporter is not None and specialization.reporter.precedes_calls:
        raise UnreachableError("constants that fail: NumPy warns before compiled code writes")
    if any(node not in program.words for node in program.graph.outputs):
        raise UnreachableError("a result that is no array in memory")
    inputs, objects = program.graph.inputs, [*call.leaves, *specialization.constants]
    if len(objects) < len(inputs) or len(access.leaf_steps) < len(inputs):
        raise UnreachableError("arguments that are not known before the call")
    numbers = [_number_type(leaf) for leaf in objects[: len(inputs)]]
    wholes = [
        call_abi.ScalarSymbol(binding.symbol, binding.leaf, binding.kind == "negated")
        for binding in specialization.bindings
        if binding.kind not in ("extent", "stride")
    ]
    bounds = [call_abi.Bound(*guard) for guard in specialization.value_guards]
    if None in numbers or not all(_is_comparable(bound, objects[bound.input]) for bound in bounds):
        raise UnreachableError("numbers of types that compiled code does not read")
    rebuilt, kinds = _result_form(plan, program, access)
    if rebuilt is not None and any(type(access.leaf_steps[i]) is call_abi.FieldStep for i in rebuilt.given_back()):
        raise UnreachableError("a field of a structured array as a result")
    own = _own(inputs, len(call.leaves)) - (set() if rebuilt is None else rebuilt.given_back())
    access.own = frozenset(~access.leaf_steps[i] for i in own)
    known = specialization.scope.values.keys()
    interface = EntryInterface(
        # Extents that are constants of the code have their guards in the argument checks already.
        guards=[guard for guard in specialization.guards if known >= {*symbolic_dims.symbols_of(guard.extent)}],
        sources=[(step, number or "") for step, number in zip(access.leaf_steps, numbers, strict=False)],
        reach=call_abi.Reach(access.steps, tuple(wholes), tuple(bounds), access.locks),
        word=len(access.objects),
        is_tuple=plan.is_tuple is not False,
        rebuilt=rebuilt,
        kinds=kinds,
        axes=plan.axes,
        own=own,
    )
    entry = emit_entry(program, interface)
    if entry is None:
        raise UnreachableError("steps between which NumPy runs, or writes before all is checked")
    return access, entry


def _result_form(
    plan: ResultPlan, program: CompiledProgram, access: ArgumentAccess
) -> tuple[call_abi.Rebuilt | None, tuple[str, ...]]:
    """How the entry builds the result, and the types of its numbers; what it needs is added to the context."""
    word, count = len(access.objects), len(program.graph.outputs)
    if plan.itself is not None:
        return call_abi.Rebuilt(None, (plan.itself,), ()), plan.kinds
    if plan.recipe is not None:
        access.objects += plan.recipe.held
        kinds = tuple(plan.recipe.kinds.get(i, "array") for i in range(count))
        return call_abi.Rebuilt(word, (), (), plan.recipe.recipe), kinds
    if plan.is_tuple is None:
        symbols = tuple(program.symbols) if plan.views else ()
        access.objects.append(plan.finisher(count, symbols))
        return call_abi.Rebuilt(word, plan.leaves, symbols), plan.kinds
    return None, plan.kinds


def _own(inputs: Sequence[Node], leaves: int) -> set[int]:
    """Indices of the code's constants (after the leaves), except those with symbolic extents.

    The specialization owns copies of these arrays, and no result aliases them: nobody can write to them.
    """
    return {
        i
        for i, node in enumerate(inputs)
        if i >= leaves and not any(symbolic_dims.symbols_of(extent) for extent in node.shape)
    }


def _number_type(leaf: Any) -> str | None:
    """The type of a number leaf, "" for an array; None for an unsupported one."""
    if type(leaf) is np.ndarray:
        return ""
    if type(leaf) in (float, int, complex):
        return str(type(leaf).__name__)
    return str(leaf.dtype.name) if isinstance(leaf, np.generic) else None


def _is_comparable(bound: call_abi.Bound, value: Any) -> bool:
    """Whether instructions express the comparison of a number with the bound of a value guard."""
    if isinstance(value, complex | np.complexfloating):
        return False
    if bound.operation == "is":
        return type(bound.bound) is type(value) and (type(value) is not int or bound.bound in INT64)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return type(bound.bound) is int and bound.bound in INT64
    if not isinstance(value, float | np.floating):
        return False
    return type(bound.bound) is float or (type(bound.bound) is int and abs(bound.bound) <= MAX_EXACT_DOUBLE)


def emit_entry(program: CompiledProgram, interface: EntryInterface) -> EntrySource | None:
    """The compiled entry of a program; None where the program has steps in Python."""
    steps = program.steps or [empty_segment()]
    if len(steps) != 1 or not isinstance(steps[0], Segment) or _writes_before_checks(program):
        return None
    inputs = set(program.graph.inputs)
    results = []
    for number, node in enumerate(program.graph.outputs):
        order = program.orders.get(node)
        if node in inputs:
            return None
        size = np.dtype(node.dtype).itemsize
        kind = interface.kinds[number] if interface.kinds else ""
        is_number = kind in call_abi.NUMBERS or (kind == "scalar" and interface.rebuilt is not None)
        axes, shape = interface.axes[number] if interface.axes else None, node.shape
        if axes is not None:
            inner = order or range(node.ndim)
            shape, order = tuple(shape[axis] for axis in axes), tuple(axes.index(axis) for axis in inner)
        word = program.words[node]
        results.append(call_abi.ResultArray(word, node.dtype, size, shape, order, kind if is_number else ""))
    if len({result.word for result in results}) < len(results) or not (interface.is_tuple or len(results) <= 1):
        return None
    segment = steps[0]
    arguments = []
    for i, (node, (step, kind_of_number)) in enumerate(zip(program.graph.inputs, interface.sources, strict=True)):
        argument = replace(_argument(program, node, segment), source=int(step), number=kind_of_number)
        if type(step) is call_abi.FieldStep:
            argument = replace(argument, field=step, may_be_out=False)
        arguments.append(replace(argument, is_own=i in interface.own))
    if any(argument.is_written and argument.repeats for argument in arguments):
        return None
    times, work, more = dim_bounds.scale_and_offset(segment.work)
    emitter = entry_point.EntryEmitter(
        arguments=arguments,
        results=results,
        arena=program.arena,
        guards=interface.guards,
        symbols=program.symbols,
        words=len(program.words) + len(program.symbols) + 1,
        work=work,
        word=interface.word,
        is_tuple=interface.is_tuple,
        reach=interface.reach,
        rebuilt=interface.rebuilt,
        polls=segment.polls,
        raised=_flags_raised(program),
    )
    # O0: the entry's run time hardly depends on optimization, its compile time does, as it has many branches.
    source = module_text.module_source("call", emitter.text(), 64, vectorcall.externals(), level=0)
    limit = NEVER if segment.calls_python else max((entry_point.GIL_RELEASE_WORK - more) // times, -NEVER)
    return EntrySource(source, segment.source, limit)


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
        targets = [store.target for store in nest.stores] if isinstance(nest, LoopNest) else [nest.node]
        if isinstance(nest, KernelCall | NumpyCall):
            targets = nest.items
        if isinstance(nest, NumpyCall) and written:
            return True
        if isinstance(nest, Flow):
            targets = [nest.node.inputs[index] for index in region_memory.updated_operands(nest.node)]
            writes_here = any(memory_of(one, program.shared) in inputs for one in targets)
            if region_memory.may_bail_out(nest.node) and (written or writes_here):
                return True
        if written and any(one in program.graph.checks for one in targets):
            return True
        written = written or any(memory_of(one, program.shared) in inputs for one in targets)
    return False


def _argument(program: CompiledProgram, node: Node, segment: Segment) -> call_abi.ArrayArgument:
    strides = node.options.get("strides") or builder.contiguous(node.shape)
    whole = symbolic_dims.key_of_shape(strides) == symbolic_dims.key_of_shape(builder.contiguous(node.shape))
    nests = [nest for nest in segment.nests if isinstance(nest, LoopNest)]
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
    return call_abi.ArrayArgument(
        program.words[node],
        node.dtype,
        size,
        node.shape,
        tuple(strides),
        whole,
        whole and alone and same_place,
        is_written=any(target is node for target, _ in program.graph.writes),
    )
