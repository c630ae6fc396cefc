"""The autotuner, `tune` of a compiled function: measure variants for a given time where the calls spend theirs.

Kernels that can be measured alone are measured as schemas of the registry, so that other functions share the result.
Everything else is measured in place: the whole program, compiled in several ways, on copies of its arguments. A variant
whose results differ from those of level 0 is discarded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray, Array, Signature
from jitkernels.compiler.diagnostics.kernel_summary import groups_of
from jitkernels.compiler.dispatch.specialization import Specialization, specialize
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.lowering import autotune_nest, autotune_program, backends, lower_graph
from jitkernels.compiler.lowering.build_segment import NestRequest
from jitkernels.compiler.lowering.compiled_program import CompiledProgram
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.core import cpu_target
from jitkernels.core.aligned_memory import aligned_memory
from jitkernels.errors import ArgumentError, ArgumentTypeError, AttrError, NotUsableError, shown
from jitkernels.selection.explain_selection import Explanation
from jitkernels.tuning.plan_tuning import Plans, tune_for
from jitkernels.tuning.tune import require_use

MIN_SHARE = 0.02
"""The share of the time below which kernels and calls are not tuned."""
FOR_KERNELS, FOR_CONFIGS = 0.4, 0.3
"""Shares of the time for kernels alone and for configs of the whole program; nests in place get the rest."""
CONFIGS: tuple[Mapping[str, Any], ...] = (
    {}, {"fuse_reduce": False}, {"max_fusion_size": 24}, {"opt_level": 2}, {"exact_sizes": True},
)  # fmt: skip
"""The first and the last one are tried however short the time is."""
STEPS = (1, 2, 4)
"""Unroll factors of a nest that are tried."""
DEFAULT_TUNE_SECONDS = 1.0
PROFILED = 3
"""Calls that measure where the time goes."""


def tune(compiled: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Explanation, ...]:
    """The implementation of `JitFunction.tune`."""
    takes_seconds = compiled._signature.takes("seconds")
    seconds = DEFAULT_TUNE_SECONDS if takes_seconds else kwargs.pop("seconds", DEFAULT_TUNE_SECONDS)
    calls = _profiled(compiled) if not (args or kwargs) else []
    try:
        if not calls:
            call = compiled._signature.flatten(args, kwargs)
            calls = [(call.structure, call.leaves, 1.0)]
    except TypeError as error:
        raise ArgumentTypeError(f"tune: expected the arguments of a call, or calls of a profile: {error}") from None
    if not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise ArgumentError(f"seconds: expected a positive number, got {shown(seconds)}")
    function, config = compiled.__wrapped__, compiled.config
    calls_with_times = [(TunedCall(function, structure, leaves, config), taken) for structure, leaves, taken in calls]
    require_use()
    total = sum(taken for _, taken in calls_with_times)
    explanations: dict[Any, Explanation] = {}
    compiled.release()
    for way, taken in sorted(calls_with_times, key=lambda call_with_time: -call_with_time[1]):
        share = taken / total if total else 1.0 / len(calls_with_times)
        if share >= MIN_SHARE or not explanations:
            try:
                explanations |= {call_with_time.attr: call_with_time for call_with_time in way.tuned(seconds * share)}
            except IndexError as error:
                raise NotUsableError(f"{way.name} raises an exception for these arguments: {error}") from None
    compiled.release()
    return tuple(explanations.values())


def _profiled(compiled: Any) -> list[tuple[Any, list[Any], float]]:
    """Structures, leaves and seconds of the profiled calls."""
    return [
        (structure, [*taken.arrays[: len(taken.arrays) - len(value.constants)]], taken.whole)
        for (structure, _), specializations in compiled._specializations.items()
        for value in specializations
        if getattr(value.program, "profile", None) is not None
        for taken in value.program.profile.by_sizes.values()
        if taken.calls  # none may have finished yet
    ]


class TunedCall:
    """One pattern of calls, compiled in as many ways as there is time for."""

    def __init__(self, function: Any, structure: Any, leaves: Sequence[Any], config: JitConfig) -> None:
        self.function, self.structure = function, structure
        self.example_leaves = [copy_with_strides(leaf) for leaf in leaves]
        self.copies = [copy_with_strides(leaf) for leaf in leaves]
        self.config = replace(config, opt_level=abs(config.opt_level), profile=False)
        self.name = getattr(function, "__name__", type(function).__name__)
        self.traces: dict[bool, Specialization] = {}
        trace = self._trace(exact=self.config.exact_sizes)
        if trace.graph is None or config.backend != "native":
            raise NotUsableError(
                f"{self.name} has no kernels: it falls back to NumPy: {trace.reason or 'the interpreter runs it'}"
            )
        if trace.has_foreign:
            raise NotUsableError(f"{self.name} takes arrays of another library: expected NumPy's")
        if any(node.dtype in PLANES for node in (*trace.graph.inputs, *trace.graph.roots)):
            raise NotUsableError(f"{self.name} has complex arguments or results, which are not tuned: expected reals")
        self.written = trace.written

    def tuned(self, seconds: float) -> list[Explanation]:
        started = perf_counter()

        def left(share: float) -> float:
            return max(0.0, started + share * seconds - perf_counter())

        explanations = self._kernels(left)
        reference = self._callable({"opt_level": 0, "exact_sizes": False}, is_timed=False)
        variants = Plans(self.schema, self._callable, reference)
        best = variants.best([dict(config) for config in CONFIGS], left(FOR_KERNELS + FOR_CONFIGS))
        if self._nests_by_share(best) and left(1.0):
            best = variants.best([best, *_with(best, autotune_program.ALL_NESTS, "")], left(1.0) / 2)
        for number, share in self._nests_by_share(best):
            if share < MIN_SHARE or not left(1.0):
                break
            schedule = self._compiled(best)[1].nests[number].schedule
            own = f"{schedule.unroll} x {schedule.vector_bytes}" if schedule else ""
            best = variants.best([best, *_with(best, f"{autotune_program.NEST}{number}", own)], left(1.0))
        record = variants.kept()
        return [*explanations, record] if record is not None else explanations

    def _kernels(self, left: Callable[[float], float]) -> list[Explanation]:
        """Tune the nests and products alone, in the order of their time."""
        collected: list[tuple[LoopNest, autotune_nest.FusedNest]] = []

        def collect(request: NestRequest) -> NestSchedule | None:
            own_kernel = autotune_nest.fused_nest(request)
            if own_kernel is not None:
                collected.append((request.nest, own_kernel))
            return backends.measured_schedule(request)

        trace = self._trace(exact=self.config.exact_sizes)
        assert trace.graph is not None, "checked by __init__"
        program = lower_graph.compile_graph(trace.graph, trace.scope, replace(self.config, profile=True), collect)
        if not program.has_kernels:
            raise NotUsableError(f"{self.name} has no kernels: it falls back to NumPy")
        own_kernels = {id(nest): own_kernel for nest, own_kernel in collected}
        explanations: list[Explanation] = []
        for step, share in _shares(program, self._arrays(trace), trace):
            if share < MIN_SHARE or (explanations and not left(FOR_KERNELS)):
                break
            try:
                if isinstance(step, MatMulStep) and not step.node.ndim > 2:
                    attr: Any = step.attr
                elif id(step) in own_kernels:
                    attr = autotune_nest.attr_of(own_kernels[id(step)], trace.scope.values)
                else:
                    continue
            except AttrError:  # too large to be measured
                continue
            explained = tune_for(attr, left(FOR_KERNELS) * share)
            explanations += [explained] if explained is not None else []
        return explanations

    def _nests_by_share(self, best: Mapping[str, Any]) -> list[tuple[int, float]]:
        """The nests of a program compiled so that no schema of the registry is for, by their share of its time."""
        program, how, trace = self._compiled(best, profile=True)
        alone = {id(nest) for nest in how.nests if nest.measured and not self.config.exact_sizes}
        numbers = {id(nest): number for number, nest in enumerate(how.nests)}
        shares = _shares(program, self._arrays(trace), trace)
        return [(numbers[id(p)], share) for p, share in shares if id(p) in numbers and id(p) not in alone]

    def _trace(self, *, exact: bool) -> Specialization:
        if exact not in self.traces:
            config = replace(self.config, exact_sizes=exact, backend="interpreter")
            self.traces[exact] = specialize(self.structure, self.example_leaves, config)
        return self.traces[exact]

    def _compiled(
        self, variant: Mapping[str, Any], *, profile: bool = False
    ) -> tuple[CompiledProgram, autotune_program.ProgramVariant, Specialization]:
        config = autotune_program.with_fields(self.config, variant)
        trace = self._trace(exact=config.exact_sizes)
        if trace.graph is None:
            raise NotUsableError(f"{self.name} falls back to NumPy: {trace.reason}")
        how = autotune_program.ProgramVariant(replace(config, profile=profile), variant, backends.measured_schedule)
        return lower_graph.compile_graph(trace.graph, trace.scope, how.config, how), how, trace

    def _arrays(self, trace: Specialization) -> list[Any]:
        """The arguments, in the same memory for all variants: alignment influences the time much."""
        return [*self.copies, *trace.constants]

    def _callable(self, variant: Mapping[str, Any], *, is_timed: bool = True) -> Callable[..., None]:
        """The program, compiled so, as a kernel of `schema`'s arrays; each call starts from the original arguments.

        Where it `is_timed`, only the first call copies results to the arrays: the tuner checks that one.
        """
        program, _, trace = self._compiled(variant)
        arrays = self._arrays(trace)
        values = trace.symbols_of(arrays)
        if values is None:
            raise NotUsableError("the code's guards exclude these arguments")
        before = [(self.copies[i], self.example_leaves[i]) for i in self.written]
        call = program.bound(arrays, values)
        call()  # compiles the code
        is_reported = False

        def run(*operands: AnyArray) -> None:
            nonlocal is_reported
            for array, content in before:
                array[...] = content
            results = call()
            if not is_reported:
                is_reported = is_timed
                for i in self.written:
                    operands[i][...] = arrays[i]
                for array, result in zip(operands[len(self.example_leaves) :], results, strict=True):
                    array[...] = result

        return run

    @property
    def schema(self) -> Any:
        """The schema of the measured program, with arguments and results as its arrays."""
        trace = self._trace(exact=self.config.exact_sizes)
        assert trace.graph is not None, "checked by __init__"
        attr = autotune_program.attr_of(trace.graph, trace.scope, self.config)
        inputs = [np.asarray(leaf) for leaf in self.example_leaves]
        argument_arrays = [
            Array(f"x{i}", "inout" if i in self.written else "in", value.shape, value.dtype.name)
            for i, value in enumerate(inputs)
        ]
        values = trace.symbols_of(self.example_leaves) or {}
        results = [
            Array(f"y{i}", "out", tuple(symbolic_dims.evaluated(extent, values) for extent in node.shape), node.dtype)
            for i, node in enumerate(trace.graph.outputs)
        ]
        attr.measured_with(BoundSignature((*argument_arrays, *results), inputs))
        return attr


class BoundSignature(Signature):
    """The signature of a call with existing arrays."""

    def __init__(self, arrays: tuple[Array, ...], inputs: Sequence[AnyArray]) -> None:
        super().__init__(arrays)
        self.__dict__["_inputs"] = inputs

    def sample(self, seed: int = 0) -> list[AnyArray]:
        inputs: Sequence[AnyArray] = self.__dict__["_inputs"]
        generator = np.random.default_rng(seed)
        return [
            *(array_given.copy() for array_given in inputs),
            *(array.sample(generator) for array in self.arrays[len(inputs) :]),
        ]


def copy_with_strides(leaf: Any) -> Any:
    if type(leaf) is not np.ndarray:
        return leaf
    spans = [(extent - 1) * step for extent, step in zip(leaf.shape, leaf.strides, strict=True)]
    first = -sum(min(span, 0) for span in spans)
    size = first + sum(max(span, 0) for span in spans) + leaf.itemsize if leaf.size else 0
    new: Any = np.ndarray(leaf.shape, leaf.dtype, aligned_memory(size), first if leaf.size else 0, leaf.strides)
    new[...] = leaf
    new.flags.writeable = leaf.flags.writeable
    return new


def _shares(program: CompiledProgram, arrays: Sequence[Any], trace: Specialization) -> list[tuple[Any, float]]:
    """The steps of a profiled program with the share of the time that each took, largest first."""
    values = trace.symbols_of(arrays)
    assert values is not None, "traced for these"
    assert program.profile is not None, "profiled"
    for _ in range(PROFILED):
        program.run(arrays, values)
    (taken,) = program.profile.by_sizes.values()
    groups = groups_of(program, program.graph)
    numbers = {id(step): number for number, step in enumerate(program.profile.steps)}
    total = sum(taken.seconds(numbers[id(step)]) for g in groups for step in g.steps if id(step) in numbers)
    shares = [(step, taken.seconds(i) / total if total else 0.0) for i, step in enumerate(program.profile.steps)]
    return sorted(shares, key=lambda value: -value[1])


def _with(best: Mapping[str, Any], key: str, own: str) -> list[dict[str, Any]]:
    """The variant with other unroll factors and vector widths for the nests of `key`."""
    widest = cpu_target.target().vector_bytes
    texts = [f"{steps} x {wide}" for wide in (widest, widest // 2) for steps in STEPS if wide >= 16]
    return [{**best, key: text} for text in texts if text != own]
