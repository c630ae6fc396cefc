"""What the inputs of an elementwise nest may be besides whole arrays of its dtype, as names.

A name is that of a dtype, or one of the forms below, which are of the nest's own dtype; where that is known it stands
before the form.
"""

NUMBER = "number"
"""A number, which stands beside all elements."""
BACKWARDS = "backwards"
"""An array whose last element lies first in memory."""
_EVERY = "every"


def every(apart: int) -> str:
    """The name of arrays of which one element in so many is read."""
    return f"{_EVERY}{apart}"


def in_dtype(name: str, dtype: str) -> str:
    """The name with the dtype that a form is of."""
    return f"{dtype}_{name}" if name in (NUMBER, BACKWARDS) or name.startswith(_EVERY) else name


def dtype_of(name: str) -> str:
    """The dtype of what a name stands for."""
    return name.partition("_")[0]


def is_number(name: str) -> bool:
    """Whether that is a number."""
    return name.endswith(f"_{NUMBER}")


def apart_of(name: str) -> int:
    """In how many elements one is read; -1 where they are read backwards."""
    form = name.partition("_")[2]
    if form == BACKWARDS:
        return -1
    return int(form.removeprefix(_EVERY)) if form.startswith(_EVERY) else 1
