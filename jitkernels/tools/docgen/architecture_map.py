"""The call paths that ARCHITECTURE.md draws: stations in order, each resolved, with its arrows, from the code."""

from typing import NamedTuple


class Station(NamedTuple):
    """One definition on a call path.

    `via` says how it is reached where no earlier station's text names it: from the one before it, or from `source`;
    `is_entrance` says that the path has another beginning here.
    """

    at: str
    does: str
    via: str = ""
    source: str = ""
    is_entrance: bool = False


class CallPath(NamedTuple):
    """A way through the code, from the call to the result."""

    title: str
    stations: tuple[Station, ...]

    @property
    def stages(self) -> dict[Station, str]:
        """The stages of the path by their first stations."""
        return {stations[0]: stage for stage, stations in COLD_STAGES.items() if stations[0] in self.stations}


COLD_STAGES: dict[str, tuple[Station, ...]] = {
    "look up": (
        Station(
            "compiler.api.cold_call:ColdCalls._call",
            "serves a call that no compiled entry took: chooses the plain function, the first compile, or a rerun",
        ),
        Station(
            "compiler.api.argument_libraries:libraries_among",
            "recognizes arguments of Dask and other libraries, which are served before all others",
        ),
        Station("compiler.api.cold_call:ColdCalls.look_up", "finds the specialization, or compiles the missing one"),
        Station(
            "compiler.capture.pytree.call_signature:CallSignature.flatten",
            "binds `args` and `kwargs`, flattens them into `leaves`; the key: structure and pattern of each leaf",
        ),
    ),
    "trace": (
        Station(
            "compiler.dispatch.specialization:specialize",
            "traces and compiles one specialization; falls back on errors",
        ),
        Station("compiler.capture.trace_call:trace_call", "calls the function with `proxies` of the leaves"),
        Station("compiler.capture.trace_call:make_proxies", "an input node and a proxy for each leaf"),
        Station(
            "compiler.capture.pytree.unflatten:Unflattener",
            "rebuilds the function, its control flow rewritten, and its arguments around the proxies",
        ),
        Station(
            "compiler.capture.pytree.result_spec:plan_result",
            "turns the `result` into the outputs of a `graph`, and a `plan` of the objects that a call returns",
        ),
    ),
    "lower": (
        Station("compiler.lowering.lower_graph:compile_graph", "lowers the graph to a `program` of segments"),
        Station(
            "compiler.lowering.lower_graph:_plan",
            "runs transforms and passes, schedules, assigns a buffer to each materialized node",
        ),
        Station("compiler.schedule.fusion:schedule_graph", "fuses nodes into loop nests"),
        Station("compiler.lowering.build_segment:SegmentBuilder.segment", "emits the steps of one segment"),
        Station(
            "compiler.codegen.nest.nest_emitter:NestEmitter.text", "emits one loop nest as LLVM IR", "for each nest"
        ),
    ),
    "link": (
        Station(
            "compiler.dispatch.specialization:Specialization.symbols_of",
            "checks the guards, and reads the `symbols` from the leaves",
        ),
        Station(
            "compiler.api.cold_call:ColdCalls._link",
            "puts a compiled entry for calls of this form in front of the function",
        ),
        Station(
            "compiler.dispatch.program_entry:build_entry",
            "collects guards, arguments and results, and emits the `entry` as LLVM IR",
        ),
        Station(
            "compiler.dispatch.argument_access:find_access",
            "finds how machine code reaches each leaf from the arguments",
        ),
        Station(
            "compiler.dispatch.compiled_link:CompiledLink",
            "loads entry and segment from the cache, or builds them; keeps them alive as a `link`",
        ),
        Station("compiler.dispatch.dispatch_chain:Links.enter", "enters the link in the inline cache"),
    ),
}
"""The stages of a compiled call's first way, which follow one another, and their stations."""
COLD_FORMS = (
    "args", "kwargs", "call", "structure", "leaves", "proxies", "result", "graph", "plan", "program", "symbols",
    "access", "entry", "link",
)  # fmt: skip
"""What the arguments are called on that way, in order: as the caller wrote them, flattened, as proxies of the trace;
the graph, its program, and the compiled entry that they become."""
CALL_PATHS = {
    "cold-call": CallPath(
        "a compiled call, cold", tuple(station for stations in COLD_STAGES.values() for station in stations)
    ),
    "warm-call": CallPath(
        "a compiled call, warm",
        (
            Station("runtime.vectorcall:base", "the type of compiled functions: Python calls its vectorcall slot"),
            Station("runtime.vectorcall:source", "machine code that walks the chain of links of the function"),
            Station(
                "runtime.inline_cache:link",
                "one link: number and names of arguments, watched globals, the compiled entry",
                "reads at run time",
            ),
            Station(
                "compiler.dispatch.entry_point:EntryEmitter.text",
                "the compiled entry of the link: one function for guards, buffers, the segment, results",
                "calls the address in the link",
            ),
            Station(
                "compiler.dispatch.argument_checks:ArgumentGuards._arrays",
                "checks types, dtypes, ranks, strides and extents; compares these with the guards",
            ),
            Station(
                "compiler.dispatch.argument_checks:ArgumentGuards._check_written_disjoint",
                "checks that written arrays are disjoint from the others",
            ),
            Station(
                "compiler.dispatch.result_allocation:ResultAllocation._take_results",
                "allocates results, or takes `out`",
            ),
            Station(
                "compiler.dispatch.entry_point:EntryEmitter._allocate_workspace", "takes pooled memory for the arena"
            ),
            Station(
                "compiler.dispatch.entry_point:EntryEmitter._call_segment",
                "calls the segment, without the GIL where it is long",
            ),
            Station(
                "compiler.codegen.core.module_text:segment_text",
                "the segment: its nests one after another, with threads",
                "calls the address in the context",
            ),
            Station(
                "compiler.dispatch.entry_point:EntryEmitter._release_workspace",
                "returns pooled memory, and makes the result",
                "returns to the entry",
            ),
        ),
    ),
    "everyday-call": CallPath(
        "an everyday call",
        (
            Station(
                "dispatch.native.entry:jk_everyday",
                "machine code behind `jk.softmax` and its like: the fast path, the general path, or Python",
            ),
            Station("dispatch.native.entry:try_fast_path", "whole arrays of one dtype, options left out"),
            Station("dispatch.native.fast_path:elementwise", "elementwise functions: checks, allocates, calls"),
            Station("dispatch.native.fast_path:of_rows", "functions of rows: the same"),
            Station("dispatch.native.entry:call_bound", "binds arguments to parameters"),
            Station("dispatch.native.entry:general", "any other call", "loads the part on first use"),
            Station("dispatch.native.entry:dispatch_call", "inputs, options, extents, context, results"),
            Station("dispatch.native.input_operands:read_inputs", "describes the inputs"),
            Station("dispatch.native.lookup:find_context", "finds the kernel of the options, dtype and size class"),
            Station(
                "dispatch.native.result_arrays:call_with_results", "allocates or checks results, and runs the kernel"
            ),
            Station(
                "dispatch.operators:Everyday.serve",
                "Python: a size class that is new, or a call that is rare",
                "calls the slow callable of the table",
                "dispatch.native.entry:jk_everyday",
            ),
            Station("dispatch.operators:Everyday.call", "learns a kernel for the class, or computes in Python"),
            Station("dispatch.operators:Everyday._learn_missed", "enters the kernel of a new class in the table"),
            Station("dispatch.kernel_cache:KernelFuncs.of_class", "the kernel of the class, remembered"),
            Station(
                "selection.select:choose_for_class", "chooses implementation and variant for any size of the class"
            ),
            Station("selection.select:preferences", "the lookup order: measured, nearby, shipped, static"),
            Station("dispatch.kernel_cache:_build_choice", "builds the kernel of the choice"),
            Station("dispatch.kernel:Kernel", "one implementation bound to one attr: machine code and launcher"),
        ),
    ),
    "tune": CallPath(
        "a tune: explicit, and online",
        (
            Station("tuning.tune:tune", "`jk.tune` and `jitkernels tune`: measure now"),
            Station("tuning.tune:tune_class", "measures all candidates of the attr's size class"),
            Station("tuning.tune:still_open", "leaves out candidates that lost before"),
            Station("tuning.tune:candidates", "implementations by variants, in the static order"),
            Station("tuning.tuner:contest", "checks, times and orders candidates"),
            Station("tuning.tuner:Trial.admit", "checks one candidate against the reference, and times one call"),
            Station("tuning.tuner:Trial.run", "interleaves timing rounds of those that remain"),
            Station("tuning.timer:Stopwatch", "the one timer"),
            Station("tuning.tune:keep", "stores the record"),
            Station("selection.records:save", "one JSON file per size class, under the environment's hash"),
            Station(
                "tuning.online_tuning:watch",
                "online tuning, which the hook `watch_pick` starts: follows a kernel from its first pick on",
                is_entrance=True,
            ),
            Station("tuning.online_tuning:Account.settle", "credits calls, and measures what they pay for"),
            Station("tuning.tuning_budget:TuningBudget.buy", "takes as many candidates as the budget allows"),
            Station("tuning.tuning_budget:TuningBudget._run_contest", "runs one contest among them"),
        ),
    ),
    "program-tune": CallPath(
        "a tune of a compiled function",
        (
            Station("compiler.api.jit:JitFunction.tune", "`f.tune(*args, seconds=1.0)`"),
            Station("compiler.diagnostics.autotune:tune", "divides the time among kinds of calls"),
            Station(
                "compiler.diagnostics.autotune:TunedCall.tuned", "kernels, whole-program configs, then single nests"
            ),
            Station("tuning.plan_tuning:Plans.best", "measures ways of compiling against each other"),
            Station(
                "compiler.lowering.backends:choose_variant",
                "a later compile looks for what was measured",
                "through the stored record",
            ),
            Station("compiler.lowering.autotune_program:choose_variant", "the config of the whole program"),
            Station("compiler.lowering.backends:measured_schedule", "the schedule of each nest"),
            Station("compiler.lowering.autotune_nest:measured_schedule", "the same, read from the record"),
        ),
    ),
}
