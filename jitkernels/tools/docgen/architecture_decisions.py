"""The table of ARCHITECTURE.md that says where each thing is decided; every place is resolved."""

DECISIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "fusion": (
        (
            "compiler.schedule.fusion:schedule_graph",
            "the rules, numbered in the module's docstring; the loop until none applies",
        ),
        (
            "compiler.schedule.fusion_region:FusionRegion",
            "what one output's loop nest computes, and what blocks fusion",
        ),
        ("compiler.schedule.fusion:_NestGrouping.group", "which outputs share a loop nest"),
        ("compiler.schedule.gemm_epilogue:move_products_to_readers", "which nests run on the rows of a matrix product"),
        (
            "compiler.transforms.decompose_kernels:decompose_fusible_kernels",
            "which kernels are called, and which dissolve into nests",
        ),
        ("compiler.ir.config:JitConfig", "`max_fusion_size`, `max_inputs`, `fuse_reduce`, `opt_level`"),
    ),
    "loop order": (
        (
            "compiler.schedule.nest.choose_schedule:choose_schedule",
            "the schedule of a nest: what follows for loops, vectors, prefetches and stores is chosen here, by rules",
        ),
        ("compiler.schedule.nest.loop_order:Loops._collapse", "which loops become one"),
        ("compiler.schedule.nest.shared_loads:keeps_rows", "which stay two: rows of a stencil that share loads"),
        (
            "compiler.schedule.nest.loop_order:Loops._interchange_loops",
            "loop interchange: loops of elementwise outputs, by the strides of the first one",
        ),
        (
            "compiler.schedule.nest.loop_order:Loops._reverse_backward_loops",
            "loops that run backwards in all arrays are reversed",
        ),
        ("compiler.schedule.nest.loop_order:Loops.order", "the row loops otherwise: the lane loop is the last one"),
        (
            "compiler.schedule.nest.loop_order:Loops.inner_order",
            "the loops of a phase, reduced or only stored: the lane loop is the last one",
        ),
        ("compiler.schedule.loop_direction:directions_of", "which loops run backwards, for updates in place"),
        ("compiler.schedule.nest.serpentine_rule:serpentine_words", "which loops reverse in every second iteration"),
    ),
    "vectorization": (
        ("compiler.schedule.nest.loop_order:Loops._lane_loop", "which loop's iterations are the lanes"),
        ("compiler.schedule.nest.loop_order:Loops._lanes", "how many lanes"),
        ("compiler.schedule.nest.loop_order:Loops._short_lanes", "code of its own for short loops"),
        ("compiler.schedule.nest.row_packing:packings", "several short rows in one vector"),
        (
            "compiler.lowering.build_segment:SegmentBuilder._chosen",
            "the vectors and the unroll factor of a nest: as measured, or by heuristics",
        ),
        (
            "compiler.schedule.nest.heuristics:default_schedule",
            "vectors of up to 64 bytes; inside of loops, for stencils and reductions of short rows, of up to 32",
        ),
        (
            "compiler.schedule.nest.loop_order:Loops._gathered_run",
            "transposes: the loop inside of the lane loop, along which squares of elements go through registers",
        ),
        ("codegen.llvm_passes:recipe", "LLVM's vectorizers, for kernels written as scalar loops"),
    ),
    "unrolling": (
        ("compiler.schedule.nest.heuristics:unroll", "how many vectors one iteration computes"),
        ("compiler.schedule.unroll_short_axes:unroll_short_axes", "axes of two to four elements become as many arrays"),
        (
            "compiler.schedule.nest.phase_rules:_row_jam",
            "which of these use it: rows that share loads, or loads a few elements apart in one row",
        ),
        ("compiler.schedule.nest.shared_loads:may_share_loads", "there, stencils in loops, bound by loads"),
        ("compiler.schedule.nest.shared_loads:rows_share", "there, two rows at once, or one"),
        ("compiler.schedule.nest.phase_rules:doubles_steps", "twice the unroll factor, for reduced rows, one per lane"),
        (
            "compiler.lowering.build_segment:MAX_UNROLLED",
            "LLVM's unrolling of inner loops: only in segments with control flow, with so many loops and branches",
        ),
        ("compiler.capture.control_flow.unroll_at_trace:unroll", "Python loops that the trace writes out"),
        ("compiler.capture.control_flow.runtime_hooks:_for", "whether a Python loop becomes a loop of the graph"),
    ),
    "prefetch": (
        (
            "compiler.lowering.autotune_nest:best_schedule",
            "nests measured best with streaming stores from fewer bytes on than unmeasured ones",
        ),
        ("compiler.api.traced_kernel:range_kernel", "the same for traced references"),
        (
            "compiler.schedule.nest.phase_rules:_phase_schedule",
            "reads of these, and of nests with streamed outputs: the next row, or what comes soon",
        ),
        ("compiler.schedule.nest.store_rules:prefetches_stores", "writes: the next line of each output"),
        ("compiler.codegen.nest.nest_emitter:NestEmitter._begin_streams", "the line in which a streamed row ends"),
        ("compiler.schedule.nest.phase_rules:_row_jam", "the lines that the next rows of a stencil store to"),
        ("compiler.schedule.nest.vector_runs:prefetched_runs", "rows that one vector is multiplied with"),
        (
            "microkernels.gemm.microkernel:Tile",
            "`prefetch`: C, while A and B are multiplied; `prefetch_beside`: the columns of B to the right",
        ),
        ("microkernels.gemm.dot_microkernel:_DotText._multiply", "the long operand of a product by dot products"),
        ("microkernels.weight_only_quant.dot_emitter:DotWriter._fetch", "the weights of a dot product"),
    ),
    "aligned stores": (
        ("compiler.schedule.nest.store_rules:aligned_target", "which output, if any"),
        ("compiler.codegen.nest.aligned_stores:AlignedStores.peeled_end", "whether peeling pays, at run time"),
    ),
    "streaming stores": (
        ("compiler.schedule.nest.heuristics:stream", "from how many bytes on, without measurements: `STREAM_BYTES`"),
        (
            "compiler.lowering.build_segment:SegmentBuilder._chosen",
            "none by heuristics for the epilogue of a product, whose data is cached",
        ),
        ("microkernels.tuning_space:STREAM_CANDIDATE_BYTES", "from how many bytes on they are measured"),
        (
            "compiler.schedule.nest.store_rules:streamed_targets",
            "which outputs qualify: full cache lines, of the lane loop",
        ),
        (
            "compiler.codegen.nest.aligned_stores:AlignedStores.are_many",
            "the test at run time: of size, of alignment, and that no array that is read begins at the same address",
        ),
    ),
    "aliasing": (
        (
            "compiler.dispatch.argument_checks:ArgumentGuards._check_written_disjoint",
            "arguments that a call writes: checked per call",
        ),
        ("compiler.dispatch.specialization:Specialization.may_write", "the same for calls from Python"),
        ("compiler.dispatch.result_allocation:ResultAllocation._check_disjoint", "an `out` array and the arguments"),
        ("compiler.dispatch.result_allocation:ResultAllocation._check_outs_disjoint", "several `out` arrays"),
        (
            "compiler.lowering.build_segment:SegmentBuilder._overlap",
            "whether two arrays of a frame may alias: buffers of the arena, by their offsets",
        ),
        ("compiler.schedule.update_in_place:shared_memory", "updates that need no copy"),
        ("compiler.passes.index_maps:are_disjoint", "whether two regions of one array are disjoint"),
        ("compiler.codegen.core.parallel_region:phases_of", "whether two steps need a barrier between them"),
        ("compiler.codegen.core.parallel_region:_is_iteration_local", "whether dependent steps may share a phase"),
        ("dispatch.native.result_arrays:resolve_overlap", "everyday calls whose `out` overlaps an input"),
    ),
    "bounds checks": (
        ("compiler.transforms.bounds_checks:with_bounds_checks", "index arrays: before anything is written"),
        ("compiler.capture.ints.element_access:_checked_index", "`a[i]` in loops: check, proof, or guard"),
        (
            "compiler.capture.ints.element_access:checked_indices",
            "index arrays in loops: one check of all before the gathers",
        ),
        ("compiler.capture.ints.intervals:interval", "the range of an int, by which a check is proved redundant"),
        (
            "compiler.capture.ints.intervals:guarded_at_least_zero",
            "an extent that is large enough: proved, or assumed under a guard",
        ),
        ("compiler.capture.ints.intervals:intersect", "ranges that comparisons narrow"),
        ("compiler.codegen.control_flow.hoisted_bounds_checks:hoistable_indices", "checks hoisted out of loops"),
    ),
    "fallback": (
        (
            "compiler.capture.trace_call:trace_call",
            "a function that cannot be traced: UnsupportedError, with the reason",
        ),
        ("compiler.dispatch.specialization:specialize", "a trace or graph that cannot be compiled"),
        ("compiler.api.graph_breaks:GraphBreaks.division", "what Python runs, with compiled parts around it"),
        ("compiler.capture.graph_breaks.partition:Partition", "which statements these parts consist of"),
        ("compiler.api.graph_breaks:PartCall", "parts that Python runs faster: measured"),
        ("compiler.api.graph_breaks:Division.run", "functions that it runs faster as a whole: measured"),
        ("compiler.api.fallback_policy:FallbackReport", "warn once, or raise with `strict`"),
        (
            "compiler.api.cold_call:ColdCalls._call",
            "a call from Python: the order of the tests below, also NumPy's error handling and shared memory",
        ),
        ("compiler.capture.numpy.array_function:call_function", "one NumPy function that compiled code calls"),
        ("compiler.capture.numpy.ufuncs:elementwise", "the same for universal functions"),
        (
            "compiler.dispatch.specialization:Specialization.max_plain_elements_at_once",
            "arrays so small that NumPy is faster than building the results",
        ),
        (
            "compiler.dispatch.specialization:Specialization.max_plain_elements",
            "and faster than compiled code that Python calls",
        ),
        (
            "compiler.dispatch.specialization:Specialization.always_falls_back",
            "functions that fall back from then on without a look-up",
        ),
        ("compiler.api.cold_call:ColdCalls._run_faster", "measured: whichever of both is faster"),
        (
            "compiler.dispatch.specialization:Specialization.may_be_unprofitable",
            "code that is compared with the plain function before it is linked",
        ),
        ("compiler.dispatch.trial:LinkTrial.run", "there and after many bailouts: measured"),
        (
            "compiler.capture.control_flow.assumed_branch:assumed_side",
            "branches whose sides do not match: code for the side that the traced call takes",
        ),
        ("dispatch.kernel_cache:_build_choice", "a kernel that cannot be built: the reference serves"),
    ),
    "memory plan": (
        ("compiler.lowering.lower_graph:_allocate_arena", "the plan of one program, step by step"),
        ("compiler.memory.lifetimes:lifetimes", "when each buffer is live"),
        ("compiler.memory.arena:assign_offsets", "which buffers lie below which in the arena"),
        ("compiler.dispatch.entry_point:EntryEmitter._buffer_offsets", "their offsets, from the extents of a call"),
        ("compiler.memory.buffer_reuse:InPlaceOutputs.take_over", "results that take an operand's buffer"),
        ("compiler.memory.buffer_slices:BufferSlices", "operands that are computed in their part of a concatenation"),
        ("compiler.memory.memory_aware_order:order_units", "the order of steps that needs little memory"),
        ("compiler.memory.rematerialization:Rematerializer.within", "recomputation under `memory_limit`"),
        ("compiler.memory.output_layout:order_of_store", "the dimension order of results"),
    ),
    "threads": (
        ("runtime.threads.num_threads:get_num_threads", "how many at most"),
        ("runtime.threads.team_size:TEAM_WITH_OPENMP", "`jk_team`: how many threads one call gets, in machine code"),
        ("runtime.threads.parallel_for:MIN_THREAD_WORK", "how much work one thread must have"),
        ("compiler.codegen.core.parallel_region:regions_of", "which steps share one parallel region"),
        ("compiler.codegen.control_flow.parallel_loop:work", "which loops of the function run in parallel"),
        ("compiler.transforms.loop_parallelism:parallel_reductions_of", "the dependence test of such loops"),
        ("compiler.schedule.nest.phase_rules:is_in_blocks", "reductions to one number"),
        ("codegen.entry_points:ir", "kernels of the registry"),
    ),
    "tuning": (
        ("selection.select:choose", "the lookup order: pinned, measured, nearby, shipped, static"),
        ("tuning.tune:candidates", "what a measurement compares"),
        ("tuning.tune:still_open", "after an earlier record, only those that may still win"),
        ("tuning.tuner:Trial.results", "who wins a measurement: the margins of threads and streaming stores"),
        ("tuning.tuner:ordered", "there, the static order within noise"),
        ("tuning.online_tuning:open_account", "whether calls of a kernel earn measurements"),
        ("tuning.tuning_budget:TuningBudget.buy", "what is measured for what calls have paid"),
        ("compiler.diagnostics.autotune:TunedCall.tuned", "what `f.tune` measures"),
        ("compiler.lowering.autotune_program:choose_variant", "which measured variant of a program is compiled"),
        ("microkernels.gemm.gemm_heuristics:candidates", "which GEMM variants there are, and the static one"),
    ),
    "specialization": (
        (
            "compiler.capture.pytree.call_signature:CallSignature.flatten",
            "the key: the structure, and the pattern of each leaf",
        ),
        (
            "compiler.capture.pytree.flatten:pattern_of",
            "an array in the key: dtype, rank, extents 0 and 1, equal and short last extents, small strides",
        ),
        (
            "compiler.api.cold_call:ColdCalls.look_up",
            "which specialization serves a call, and when another is compiled",
        ),
        (
            "compiler.ir.static_dim_policy:MAX_STATIC_EXTENT",
            "and `MIN_STATIC_ELEMENTS`: short last extents of larger arrays become constants (`short_extent`)",
        ),
        (
            "compiler.ir.static_dim_policy:MAX_VECTOR_STRIDE",
            "small strides become constants, so that vectors are loaded whole",
        ),
        ("compiler.capture.pytree.recompile_limit:RecompileLimit.is_reached", "when another specialization is refused"),
        ("dispatch.native.lookup:find_context", "everyday calls: exact extents, or the size class"),
        ("selection.size_classes:class_of", "the size class of an attr"),
    ),
    "guards": (
        ("compiler.ir.symbolic_dims:Extent.guard", "relations between extents that the trace relied on"),
        ("compiler.capture.trace_context:Tracer.guard", "values of Python numbers that it relied on"),
        (
            "compiler.dispatch.object_guards:ObjectAccessBuilder",
            "globals, closures and attributes that must be what they were",
        ),
        (
            "compiler.dispatch.entry_point:EntryEmitter.text",
            "the order of the tests in the compiled entry, and there the one of `memory_limit`",
        ),
        ("runtime.inline_cache:link", "before it, the number of arguments, their names, and watched objects"),
        ("compiler.dispatch.argument_checks:ArgumentGuards._number", "there, types of numbers"),
        ("compiler.dispatch.argument_checks:ArgumentGuards._bound", "there, values of numbers"),
        ("compiler.dispatch.argument_checks:ArgumentGuards._arrays", "there, dtypes, ranks and flags of arrays"),
        ("compiler.dispatch.argument_checks:ArgumentGuards._argument", "there, extents and strides of arrays"),
        ("compiler.dispatch.argument_checks:ArgumentGuards._guard", "there, relations between extents"),
        ("compiler.dispatch.specialization:Specialization.symbols_of", "the test in Python"),
        (
            "compiler.capture.control_flow.iterables:LoopRange.is_surely_nonempty",
            "whether a loop has a first iteration",
        ),
    ),
    "algebra": (
        ("compiler.passes:optimize", "which rules run at which level; docs/rules.md lists them"),
        ("compiler.passes.fast_math:rule_2_times_reciprocal", "and its neighbours: what only `fast_math` allows"),
    ),
}
"""What is decided, and the definitions that decide it, the first one first."""
