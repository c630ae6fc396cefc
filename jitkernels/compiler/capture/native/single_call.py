"""A native call outside of loops and branches, as a loop of one iteration: regions alone have code for scalar calls."""

from typing import Any


def single_call(call: Any, result: Any) -> Any:
    """The result of a call; `result`: a number of its kind."""
    missing = True
    while missing:
        result = call()
        missing = False
    return result
