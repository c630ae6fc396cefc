"""Code in which each product is rounded before it is added to, as NumPy's and Python's are: no fused multiply-adds.

Numbers in programs with loops come out as Python has them, and may decide what is done; small differences grow from
round to round. Two kinds of products may be fused nevertheless: those inside of functions such as ``tanh``, whose
errors are measured so, and those of arrays with a power of two, which are exact unless they overflow or are subnormal.
"""

import math
import re
import struct
from dataclasses import replace

from jitkernels.maths import basic
from jitkernels.native.language.lanes import Library

FUSED = " contract "
"""The flag of instructions that may be joined: of a product and a sum, if both have it."""
PRODUCTS = frozenset(one.__name__ for one in (basic.multiply, basic.square))
SYMBOL = re.compile(rf'@"(?:{"|".join(sorted(PRODUCTS))})\.[0-9a-f]+"')
NUMBER = re.compile(r"\b0x([0-9A-F]{16})\b")
LARGEST = 64
"""Exponents of powers of two that are no way to an overflow or a subnormal number."""


def rounded(library: Library, text: str, *, all_products: bool = False) -> str:
    """A text that calls functions of a library: of products, such as are not joined."""

    def own(found: "re.Match[str]") -> str:
        symbol = found[0]
        name = f'{symbol[:-1]}.rounded"'
        if name not in library.definitions:
            definition = library.definitions[symbol]
            body = definition.text.replace(symbol, name, 1).replace(FUSED, " ")
            library.definitions[name] = replace(definition, symbol=name, text=body)
        return name

    return "\n".join(
        line if not all_products and _is_exact(line) else SYMBOL.sub(own, line) for line in text.split("\n")
    )


def _is_exact(line: str) -> bool:
    """Whether one factor of a product is written out as a power of two."""
    return any(_is_power(struct.unpack(">d", bytes.fromhex(one))[0]) for one in NUMBER.findall(line))


def _is_power(number: float) -> bool:
    part, exponent = math.frexp(number)
    return abs(part) == 0.5 and abs(exponent) <= LARGEST
