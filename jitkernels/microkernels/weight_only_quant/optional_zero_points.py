"""Body of a loop nest over quantized weights, whose signature depends on whether there are zero points."""

from collections.abc import Callable
from typing import Any


def body_of(computed: Any, *, shifted: bool) -> Callable[..., None]:
    """Return a body with zero points, or one without, where `computed` gets the weights in their place."""

    def plain(
        a: Any, packed: Any, scale: Any, c: Any, m: int, n: int, groups: int, half: int, scratch: Any, begin: int,
        end: int,
    ) -> None:  # fmt: skip
        computed(a, packed, scale, packed, c, m, n, groups, half, scratch, begin, end)

    def with_zeros(
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, half: int, scratch: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        computed(a, packed, scale, zero, c, m, n, groups, half, scratch, begin, end)

    return with_zeros if shifted else plain
