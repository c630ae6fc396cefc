"""Arguments of compiled functions that are arrays of other libraries: the function sees NumPy arrays of their memory.

Compiled entries read NumPy arrays alone, so a call with others converts them and is made again.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema import foreign_arrays
from jitkernels.compiler.capture.pytree.call_signature import CallSignature
from jitkernels.errors import ArgumentTypeError

REASON = "an array of another library"
"""Why a call enters through Python."""


def as_arrays(
    function: Any, signature: CallSignature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with NumPy arrays in place of those of other libraries; None where all of these are static.

    Raises ArgumentTypeError, naming the argument, for an array whose memory NumPy cannot read.
    """
    count = len(signature.names)
    names = [signature.names[i] if i < count else f"argument {i + 1}" for i in range(len(args))]
    positional = [
        value if i in signature.statics else _array(function, names[i], value) for i, value in enumerate(args)
    ]
    named = {
        name: value if name in signature.static_argnames else _array(function, name, value)
        for name, value in kwargs.items()
    }
    values = zip((*positional, *named.values()), (*args, *kwargs.values()), strict=True)
    return None if all(new is old for new, old in values) else (tuple(positional), named)


def _array(function: Any, name: str, value: Any) -> Any:
    if not foreign_arrays.is_foreign(value):
        return value
    try:
        array = foreign_arrays.as_array(value)
    except foreign_arrays.NotShareableError as error:
        text = f"{function.__name__}: {name}: expected an array that NumPy can read, got {error}"
        raise ArgumentTypeError(text) from None
    return array if type(array) is np.ndarray else value
