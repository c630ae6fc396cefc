"""The glossary of ARCHITECTURE.md: every place is resolved."""

GLOSSARY: tuple[tuple[str, str, str], ...] = (
    (
        "access map",
        "for each dimension of an array, the affine expression of loop indices that addresses it",
        "compiler.ir.access_map",
    ),
    ("arena", "the one block of memory in which all buffers between steps lie", "compiler.memory.arena:Arena"),
    (
        "array proxy",
        "what stands for an array in a trace: it has NumPy's operators, and adds nodes to the graph",
        "compiler.capture.array_proxy:Traced",
    ),
    (
        "attr",
        "one instance of an op schema: sizes, dtype, options; it names what a kernel computes",
        "attrs.schema.base:KernelAttr",
    ),
    (
        "bailout",
        "a compiled call that finds a guard broken, and leaves the call to the next link or to Python",
        "compiler.dispatch.entry_point:EntryEmitter._set_bailout",
    ),
    ("candidate", "an implementation in one variant, in a measurement", "tuning.tuner:Candidate"),
    (
        "compiled entry",
        "the function that Python calls of one specialization: guards, buffers, segment, results",
        "compiler.dispatch.program_entry:EntrySource",
    ),
    (
        "context",
        "the words that a launcher or a compiled entry reads: addresses, sizes, a countdown",
        "runtime.abi_layout:Context",
    ),
    (
        "cotangent",
        "the derivative of the result by one node, in reverse mode",
        "compiler.autodiff.cotangent_accumulator",
    ),
    (
        "epilogue",
        "what is computed on the result of a matrix product or reduction while it is in registers or cache",
        "compiler.schedule.gemm_epilogue",
    ),
    ("error bound", "how far a result may be from the exact one", "attrs.schema.error_bounds"),
    (
        "everyday function",
        "`jk.softmax` and its like: an op schema called as a NumPy function",
        "dispatch.operators:Everyday",
    ),
    (
        "fallback",
        "the plain Python function, or the NumPy reference, runs in place of compiled code",
        "compiler.api.fallback_policy",
    ),
    (
        "frame",
        "the words that a segment reads: one slot for each buffer and each symbol",
        "compiler.lowering.compiled_program:CompiledProgram",
    ),
    (
        "functionalization",
        "writes to arrays become new values of their storage, so that the graph is pure",
        "compiler.capture.functionalization:Storage",
    ),
    (
        "fusion region",
        "the nodes that compute one output in one loop nest: its producer slice, up to what is materialized",
        "compiler.schedule.fusion_region:FusionRegion",
    ),
    ("guard", "a condition on arguments under which a specialization is right", "compiler.ir.symbolic_dims:Guard"),
    (
        "implementation",
        "one way to compute an op schema: `refer`, `gen`, `mkl`, `numba`, ...",
        "attrs.schema.kernel_impl:Implementation",
    ),
    ("inline cache", "the chain of links that a call of a compiled function walks", "runtime.inline_cache:link"),
    ("kernel", "one implementation bound to one attr, as machine code behind a launcher", "dispatch.kernel:Kernel"),
    (
        "kernel archive",
        "a read-only file of built objects and measurements, shipped with a package or image",
        "codegen.kernel_archive:KernelArchive",
    ),
    (
        "lanes",
        "the elements of one vector; the lane loop is the loop whose iterations they are",
        "compiler.schedule.nest.loop_order:Loops._lanes",
    ),
    ("launcher", "the machine code between a Python call and a kernel", "dispatch.native.launcher"),
    (
        "link",
        "one entry of an inline cache: how many arguments, which names, what must hold, what to call",
        "runtime.inline_cache:link",
    ),
    (
        "loop nest",
        "loops that compute one or several outputs in one pass, as the compiler schedules them",
        "compiler.schedule.loop_nest:LoopNest",
    ),
    ("microkernel", "the register tile of a matrix product", "microkernels.gemm.microkernel"),
    ("object cache", "built objects on disk, by the hash of source, flags and target", "codegen.object_cache:fetch"),
    (
        "online tuning",
        "calls pay, by the time that they take, for measurements that may make them faster",
        "tuning.online_tuning:Account",
    ),
    (
        "op schema",
        "an attr class: fields, arrays with symbolic shapes, tolerance, sweep; an entry of the registry",
        "attrs.schema.base:KernelAttr",
    ),
    ("oracle", "an independent computation in long double that the tests compare with", "tools.testing.expected"),
    (
        "program",
        "a graph made ready to run: segments, and steps of NumPy between them",
        "compiler.lowering.compiled_program:CompiledProgram",
    ),
    (
        "pytree",
        "nested containers of arrays, numbers and objects, flattened into leaves and a structure",
        "compiler.capture.pytree.flatten:Flattener",
    ),
    (
        "range kernel",
        "the source of a kernel: a function over a range of its parallel dimension, which threads divide",
        "codegen.range_kernel:RangeKernel",
    ),
    ("record", "the stored measurement of one size class", "selection.records:Record"),
    ("reference", "the NumPy implementation, which defines what a kernel means", "refer"),
    ("region", "the body of a loop or branch: a graph of its own inside of a node", "compiler.ir.regions:regions_of"),
    (
        "rematerialization",
        "a buffer is computed again where it is read next, so that others have its memory meanwhile",
        "compiler.memory.rematerialization:Rematerializer",
    ),
    (
        "segment",
        "steps that run as one compiled function, without Python in between",
        "compiler.lowering.compiled_program:Segment",
    ),
    (
        "serpentine order",
        "every second pass over an array runs backwards, to find the end in the cache",
        "compiler.schedule.nest.serpentine_rule",
    ),
    ("shipped table", "measurements of a CPU family that come with the package", "selection.shipped_tables:nearest"),
    (
        "size class",
        "attrs whose extents have the same next power of two: they share measurements and code for any size",
        "selection.size_classes:class_of",
    ),
    (
        "specialization",
        "the code for one structure and pattern of arguments (dtype, rank, equal extents, layout), with its guards",
        "compiler.dispatch.specialization:Specialization",
    ),
    (
        "static order",
        "the order in which implementations are taken where nothing was measured",
        "attrs.schema.registry:implementations",
    ),
    (
        "step",
        "what a schedule consists of: a loop nest, a product, a kernel call, a NumPy call, a region",
        "compiler.lowering.build_segment:LoweredStep",
    ),
    (
        "streaming store",
        "a store that goes past the caches (`!nontemporal` in LLVM), for results larger than these",
        "compiler.codegen.core.load_store:Memory.store",
    ),
    (
        "symbolic dimension",
        "an extent, stride or int argument whose value is known only at run time",
        "compiler.ir.symbolic_dims:Extent",
    ),
    ("symint", "the Python int of a trace that stands for a symbolic dimension", "compiler.capture.symint:SymInt"),
    ("tape", "values of loop iterations that reverse mode stores for the way back", "compiler.autodiff.tapes"),
    ("trace", "one run of the user's function with array proxies", "compiler.capture.trace_context:Tracer"),
    ("trip count", "how many iterations a loop has", "compiler.transforms.trip_count:trip_count_of"),
    (
        "tuning budget",
        "what the calls of a size class have paid for, and what measuring it has cost",
        "tuning.tuning_budget:TuningBudget",
    ),
    (
        "unroll-and-jam",
        "several iterations of an outer loop computed in one pass of the inner one",
        "compiler.codegen.nest.unroll_and_jam:UnrollJam",
    ),
    (
        "variant",
        "the free choices of one implementation: tile, unroll, vector width, threads",
        "attrs.schema.kernel_impl:Variant",
    ),
    ("VJP", "vector-Jacobian product: the reverse-mode rule of an operation", "compiler.autodiff.vjp_rules"),
)
"""Term, meaning, and the module or definition where it lives."""
