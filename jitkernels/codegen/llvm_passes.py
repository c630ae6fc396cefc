"""Which of LLVM's passes code goes through, where it is not its whole pipeline."""

from collections.abc import Sequence

STRAIGHT_PASSES = (
    "sroa",  # before inlining, so that less is inlined
    "simplify_cfg", "always_inliner", "instruction_combine", "new_gvn", "simplify_cfg", "tail_call_elimination",
)  # fmt: skip
INLINING_PASSES = "sroa", "always_inliner", "sroa"


def recipe(passes: Sequence[str], vector_bytes: int, level: int) -> str:
    """What decides the machine code beside a text, as a comment that the text begins with.

    Else code that other passes made of the same text would be taken for it.
    """
    return f"; {' '.join(passes)}, vectors of {vector_bytes} bytes, level {level}\n"
