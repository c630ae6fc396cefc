"""LLVM pass lists for code that does not need the whole O3 pipeline."""

from collections.abc import Sequence

STRAIGHT_PASSES = (
    "sroa",  # before inlining, so that less is inlined
    "simplify_cfg", "always_inliner", "instruction_combine", "new_gvn", "simplify_cfg", "tail_call_elimination",
)  # fmt: skip
INLINING_PASSES = "sroa", "always_inliner", "sroa"
STRENGTH_REDUCTION = ("loop_strength_reduce",)


def recipe(passes: Sequence[str], vector_bytes: int, level: int) -> str:
    """The pass recipe as a comment in front of a text.

    It determines the machine code, and must be part of the cache key.
    """
    return f"; {' '.join(passes)}, vectors of {vector_bytes} bytes, level {level}\n"
