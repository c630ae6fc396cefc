"""The plans that a kernel keeps, as LLVM IR: a call takes one out, and nobody else has it until it is put back.

A plan is a block of words, of which the first is its key and word `TABLES_WORD` the address of its tables, or of what a
library made. A call that finds none with its key makes one; where all slots are taken it replaces a plan. There is no
lock: a process that forks in the middle of a call leaves its child fewer plans.
"""

from jitkernels.codegen.source_protocol import IRFunction

PLAN_SLOTS = 16
TABLES_WORD = 1
PLAN_WORDS = 96
"""Words of a plan."""
CHECKED_BITS, HASH_FACTOR = 6, -7046029254386353131
"""How many keys are known to have all passes, as a power of two, and what spreads them over the slots."""

take_plan = IRFunction(
    "fft_take_plan",
    "int64_t*",
    ("int64",),
    f"""@fft_plans = global [{PLAN_SLOTS} x ptr] zeroinitializer
@fft_keys = global [{PLAN_SLOTS} x i64] zeroinitializer
declare ptr @aligned_alloc(i64, i64)
define ptr @fft_take_plan(i64 %key) noinline nounwind {{
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %key.at = getelementptr i64, ptr @fft_keys, i64 %i
  %known = load atomic i64, ptr %key.at monotonic, align 8
  %alike = icmp eq i64 %known, %key
  br i1 %alike, label %take, label %other
take:
  %slot = getelementptr ptr, ptr @fft_plans, i64 %i
  %plan = atomicrmw xchg ptr %slot, ptr null acq_rel
  %missing = icmp eq ptr %plan, null
  br i1 %missing, label %other, label %found
found:
  ret ptr %plan
other:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {PLAN_SLOTS}
  br i1 %more, label %look, label %make
make:
  %fresh = call ptr @aligned_alloc(i64 64, i64 {8 * PLAN_WORDS})
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %none, label %new
new:
  store i64 0, ptr %fresh
  %tables.at = getelementptr i64, ptr %fresh, i64 {TABLES_WORD}
  store ptr null, ptr %tables.at
  ret ptr %fresh
none:
  ret ptr null
}}
""",
)
"""The plan of a key; or a new one whose key is 0, or one that another thread has just put there; null for no memory."""

put_plan = IRFunction(
    "fft_put_plan",
    "int64_t*",
    ("int64_t*",),
    f"""@fft_plans = external global [{PLAN_SLOTS} x ptr]
@fft_keys = external global [{PLAN_SLOTS} x i64]
@fft_turn = internal global i64 0
define ptr @fft_put_plan(ptr %plan) noinline nounwind {{
entry:
  %key = load i64, ptr %plan
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %slot = getelementptr ptr, ptr @fft_plans, i64 %i
  %there = load atomic ptr, ptr %slot monotonic, align 8
  %free = icmp eq ptr %there, null
  br i1 %free, label %try, label %other
try:
  %pair = cmpxchg ptr %slot, ptr null, ptr %plan acq_rel monotonic
  %kept = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %kept, label %name, label %other
name:
  %key.at = getelementptr i64, ptr @fft_keys, i64 %i
  store atomic i64 %key, ptr %key.at monotonic, align 8
  ret ptr null
other:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, {PLAN_SLOTS}
  br i1 %more, label %look, label %replace
replace:
  %turn = atomicrmw add ptr @fft_turn, i64 1 monotonic
  %victim = and i64 %turn, {PLAN_SLOTS - 1}
  %victim.at = getelementptr ptr, ptr @fft_plans, i64 %victim
  %old = atomicrmw xchg ptr %victim.at, ptr %plan acq_rel
  %victim.key = getelementptr i64, ptr @fft_keys, i64 %victim
  store atomic i64 %key, ptr %victim.key monotonic, align 8
  ret ptr %old
}}
""",
)
"""Put a plan back; returns the one that it replaces, for the caller to free, or null."""

free_words = IRFunction(
    "fft_free_words",
    "void",
    ("int64_t*",),
    """declare void @free(ptr)
define void @fft_free_words(ptr %plan) noinline nounwind {
  call void @free(ptr %plan)
  ret void
}
""",
)
"""Free the words of a plan."""


count_kept = IRFunction(
    "fft_count_kept",
    "int64",
    ("int64",),
    """@fft_kept = internal global i64 0
define i64 @fft_count_kept(i64 %more) noinline nounwind {
  %before = atomicrmw add ptr @fft_kept, i64 %more monotonic
  %now = add i64 %before, %more
  ret i64 %now
}
""",
)
"""Add to the size of all plans that lie in slots; returns it."""


def tables_of(element: str) -> IRFunction:
    """Return the function that gives the tables of a plan as elements of a C type."""
    symbol = f"fft_tables_{element}"
    return IRFunction(
        symbol,
        f"{element}*",
        ("int64_t*",),
        f"""define ptr @{symbol}(ptr %plan) alwaysinline nounwind {{
  %at = getelementptr i64, ptr %plan, i64 {TABLES_WORD}
  %tables = load ptr, ptr %at
  ret ptr %tables
}}
""",
    )


set_tables = IRFunction(
    "fft_set_tables",
    "void",
    ("int64_t*", "void*"),
    f"""define void @fft_set_tables(ptr %plan, ptr %tables) alwaysinline nounwind {{
  %at = getelementptr i64, ptr %plan, i64 {TABLES_WORD}
  store ptr %tables, ptr %at
  ret void
}}
""",
)

no_words = IRFunction(
    "fft_no_words",
    "int64_t*",
    (),
    """define ptr @fft_no_words() alwaysinline nounwind {
  ret ptr null
}
""",
    python=lambda: None,
)
"""The plan that there is not."""

is_checked = IRFunction(
    "fft_is_checked",
    "int64",
    ("int64",),
    f"""@fft_checked = global [{1 << CHECKED_BITS} x i64] zeroinitializer
define i64 @fft_is_checked(i64 %key) alwaysinline nounwind {{
  %mixed = mul i64 %key, {HASH_FACTOR}
  %slot = lshr i64 %mixed, {64 - CHECKED_BITS}
  %at = getelementptr i64, ptr @fft_checked, i64 %slot
  %known = load atomic i64, ptr %at monotonic, align 8
  %alike = icmp eq i64 %known, %key
  %result = zext i1 %alike to i64
  ret i64 %result
}}
""",
    python=lambda key: 0,  # noqa: ARG005  # Python asks which passes there have to be
)
"""Whether all passes of a key are known to be there."""

note_checked = IRFunction(
    "fft_note_checked",
    "void",
    ("int64",),
    f"""@fft_checked = external global [{1 << CHECKED_BITS} x i64]
define void @fft_note_checked(i64 %key) noinline nounwind {{
  %mixed = mul i64 %key, {HASH_FACTOR}
  %slot = lshr i64 %mixed, {64 - CHECKED_BITS}
  %at = getelementptr i64, ptr @fft_checked, i64 %slot
  store atomic i64 %key, ptr %at monotonic, align 8
  ret void
}}
""",
    python=lambda key: None,  # noqa: ARG005
)
