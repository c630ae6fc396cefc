"""The LLVM function that calls a printed Python function, and the frame of its text."""

from collections.abc import Mapping, Sequence

from jitkernels.codegen.numba_functions import PythonFunction
from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.codegen.numba.spelling import Spelling

REDUCED_ROWS = 1024
"""Rows that are reduced together: their accumulators stay in the first cache."""
INDENT = "    "


def python_function(
    name: str,
    arguments: Sequence[tuple[str, str]],
    lines: Sequence[str],
    noalias: frozenset[str],
    spelling: Spelling,
    returns: str = "",
) -> PythonFunction:
    """The printed function of some lines; see `PythonFunction`."""
    from jitkernels.compiler.codegen.core import module_text

    head = f"def {name.replace('.', '_')}({', '.join(argument for argument, _ in arguments)}):"
    text = "\n".join([head, *(f"{INDENT}{line}" for line in lines)])
    definitions = module_text.unit_text(spelling.library, [*spelling.texts.values()])
    return PythonFunction(f"{name}.python", text, tuple(arguments), noalias, spelling.functions, definitions, returns)


def calling_text(
    function: FunctionBuilder, name: str, python: PythonFunction, words: Mapping[str, int], symbols: Mapping[str, str]
) -> str:
    """LLVM IR of the function that the segment calls, and the printed function as a comment.

    `words`: the frame words of the arrays that are arguments; `symbols`: the symbol of each number. The status is what
    the printed function returns, 0 if it returns nothing.
    """
    new, block = function.new, function.block
    passed = ["ptr %result", "ptr %raised"]
    for argument, kind in python.arguments:
        if argument in words:
            passed.append(f"ptr {function.load_slot(block, words[argument], 'ptr')}")
        elif kind.endswith("*"):
            passed.append(f"ptr {new(block, f'alloca [{REDUCED_ROWS} x {NUMBERS[kind[:-1]].memory}], align 64')}")
        elif argument in symbols:
            passed.append(f"i64 {function.extent_of(symbols[argument])}")
        else:
            passed.append(f"i64 %{argument}")
    is_nest = not python.returns
    head = f"define internal i64 @{name}(ptr noalias readonly %frame, i64 %begin, i64 %end)"
    call = f'call i32 @"{python.symbol}"({", ".join(passed)})'
    return "\n".join(
        [
            f"{head}{' noinline' if is_nest else ''} nounwind {{",
            f"  %result = alloca {'ptr' if is_nest else 'i64'}",
            "  %raised = alloca ptr",
            *function.memory,
            *block.lines,
            *([f"  %status = {call}", "  ret i64 0\n}"] if is_nest else []),
            *([] if is_nest else [f"  %numba = {call}", "  %status = load i64, ptr %result", "  ret i64 %status\n}"]),
            python.declaration(),
            python.comment(),
        ]
    )


def append_nested(lines: list[str], head: str, inside: Sequence[str]) -> None:
    """Append a statement with a body: the head, and indented lines."""
    lines += [head, *(f"{INDENT}{line}" for line in inside or ["pass"])]
