"""Classify everyday functions by the arrays of their schemas: which of them have a fast path."""

from collections.abc import Sequence

from jitkernels.attrs.schema.signature import Argument
from jitkernels.runtime.abi_layout import Plain


def kind_of(inputs: Sequence[Argument], outputs: Sequence[Argument], symbols: Sequence[str], has_options: bool) -> int:
    """The `Plain` kind of a schema."""
    if not has_options and _is_elementwise(inputs, outputs, symbols):
        return Plain.ELEMENTWISE
    if _is_of_rows(inputs, outputs, symbols):
        return Plain.OF_ROWS
    return Plain.ANY_ORDER if _is_of_any_order(inputs, outputs) else Plain.NONE


def _is_elementwise(inputs: Sequence[Argument], outputs: Sequence[Argument], symbols: Sequence[str]) -> bool:
    """Whether all arrays have the same shape."""
    if len(symbols) != 1 or len(outputs) != 1 or not 1 <= len(inputs) <= 2:
        return False
    return all(
        a.shape == f"*{symbols[0]}" and a.in_place and a.when is None and a.transposed is None and a.dtype is None
        for a in (*inputs, *outputs)
    )


def _is_of_any_order(inputs: Sequence[Argument], outputs: Sequence[Argument]) -> bool:
    """Whether all arrays but scalars have the same shape, so that only options determine each element's operation."""
    arrays = [a for a in inputs if not a.is_number]
    return bool(arrays) and all(a.spreads and not a.fixed and a.dtype is None for a in (*arrays, *outputs))


def _is_of_rows(inputs: Sequence[Argument], outputs: Sequence[Argument], symbols: Sequence[str]) -> bool:
    """Whether the first input is an array of rows, and the output is its shape or one element per row.

    Further inputs may be vectors of a row's length; rows may have trailing dimensions.
    """
    if len(outputs) != 1 or not inputs or not 2 <= len(symbols) <= 3:
        return False
    (first, *others), (output,) = inputs, outputs
    rows, n, *trailing = symbols
    trailing_shape = "".join(f" *{symbol}" for symbol in trailing)
    rows_first = first.shape == f"*{rows} {n}{trailing_shape}" and first.when is None and first.transposed is None
    same_shape = output.shape == first.shape and first.in_place and output.in_place and output.dtype is None
    reduced = output.shape == f"*{rows}{trailing_shape}"
    vectors = all(a.shape == n and not a.in_place and a.transposed is None for a in others)
    return rows_first and (same_shape or reduced) and vectors and all(a.dtype is None for a in inputs)
