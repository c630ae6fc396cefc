"""Functions with one mistake or one unsupported construct, on the line marked `here`."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Mistake(NamedTuple):
    """A function, its arguments, and the words of its diagnostic.

    `kind`: "raised" by Python itself, "fallback" with a reason, or "refused" with an error. `words` occur in the
    diagnostic.
    """

    function: Callable[..., Any]
    make: Callable[[], tuple[Any, ...]]
    kind: str
    words: tuple[str, ...]


MISTAKES: list[Mistake] = []


def vector() -> tuple[Any, ...]:
    return np.linspace(-1.0, 2.0, 9), 20


def _planted(kind: str, *words: str, make: Callable[[], tuple[Any, ...]] = vector) -> Callable[[Any], Any]:
    def keep(function: Any) -> Any:
        MISTAKES.append(Mistake(function, make, kind, words))
        return function

    return keep


raised, falls_back, refused = (functools.partial(_planted, kind) for kind in ("raised", "fallback", "refused"))
