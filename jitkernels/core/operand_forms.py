"""Operand forms of an elementwise loop nest: a dtype, a scalar, or a strided or reversed array.

A name is that of a dtype, or one of the forms below, which have the nest's own dtype; where that is known it is the
prefix of the name.
"""

SCALAR_FORM = "number"
"""A scalar that broadcasts to all elements."""
REVERSED_FORM = "backwards"
"""An array with a negative stride: its last element is first in memory."""
_EVERY = "every"


def every(stride: int) -> str:
    """The name of a strided array that reads one element in every `stride`."""
    return f"{_EVERY}{stride}"


def in_dtype(name: str, dtype: str) -> str:
    """The name of a form with its dtype as prefix."""
    return f"{dtype}_{name}" if name in (SCALAR_FORM, REVERSED_FORM) or name.startswith(_EVERY) else name


def dtype_of(name: str) -> str:
    """The dtype of the operand that `name` stands for."""
    return name.partition("_")[0]


def is_number(name: str) -> bool:
    """Whether `name` stands for a scalar operand."""
    return name.endswith(f"_{SCALAR_FORM}")


def stride_of_form(name: str) -> int:
    """The stride of an operand in elements; -1 where it is read backwards."""
    form = name.partition("_")[2]
    if form == REVERSED_FORM:
        return -1
    return int(form.removeprefix(_EVERY)) if form.startswith(_EVERY) else 1
