"""Which everyday functions have plain calls, told by what arrays their rows declare."""

from collections.abc import Sequence

from jitkernels.native.layout import Plain
from jitkernels.signature import Argument


def kind_of(
    inputs: Sequence[Argument], outputs: Sequence[Argument], symbols: Sequence[str], has_options: bool
) -> int:
    """Which `Plain` function a row makes."""
    if not has_options and _is_elementwise(inputs, outputs, symbols):
        return Plain.ELEMENTWISE
    if _is_of_rows(inputs, outputs, symbols):
        return Plain.OF_ROWS
    return Plain.ANY_ORDER if _is_of_any_order(inputs, outputs) else Plain.NONE


def _is_elementwise(inputs: Sequence[Argument], outputs: Sequence[Argument], symbols: Sequence[str]) -> bool:
    """Whether all arrays are alike."""
    if len(symbols) != 1 or len(outputs) != 1 or not 1 <= len(inputs) <= 2:
        return False
    return all(
        a.shape == f"*{symbols[0]}" and a.in_place and a.when is None and a.turned is None and a.dtype is None
        for a in (*inputs, *outputs)
    )


def _is_of_any_order(inputs: Sequence[Argument], outputs: Sequence[Argument]) -> bool:
    """Whether all arrays are alike but for numbers, so that options alone say what happens to an element."""
    alike = [a for a in inputs if not a.is_number]
    return bool(alike) and all(a.spreads and not a.fixed and a.dtype is None for a in (*alike, *outputs))


def _is_of_rows(inputs: Sequence[Argument], outputs: Sequence[Argument], symbols: Sequence[str]) -> bool:
    """Whether an array of rows goes in first, and it or a number for each row comes out.

    Beside it there may be vectors of a row's length, behind the rows trailing dimensions.
    """
    if len(outputs) != 1 or not inputs or not 2 <= len(symbols) <= 3:
        return False
    (first, *others), (output,) = inputs, outputs
    rows, n, *trailing = symbols
    behind = "".join(f" *{symbol}" for symbol in trailing)
    whole = first.shape == f"*{rows} {n}{behind}" and first.when is None and first.turned is None
    alike = output.shape == first.shape and first.in_place and output.in_place and output.dtype is None
    reduced = output.shape == f"*{rows}{behind}"
    vectors = all(a.shape == n and not a.in_place and a.turned is None for a in others)
    return whole and (alike or reduced) and vectors and all(a.dtype is None for a in inputs)
