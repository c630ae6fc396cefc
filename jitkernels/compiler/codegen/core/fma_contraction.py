"""Code in which each product is rounded before it is added to, as NumPy's and Python's are: no fused multiply-adds.

Numbers in programs with loops come out as Python has them, and may decide what is done; small differences grow from
round to round. Two kinds of products may be fused nevertheless: those inside of functions such as ``tanh``, whose
errors are measured so, and those of arrays with a power of two, which are exact unless they overflow or are subnormal.

Without loops products are fused, but for differences of two: of equal ones NumPy leaves nothing, as in ``b * b - 4 * a
* c`` at a double root, and fused there would be a rounding error of either sign.
"""

import math
import re
import struct
from dataclasses import replace

from jitkernels.maths import basic
from jitkernels.native.language.lanes import Library

FUSED = " contract "
"""The flag of instructions that may be joined: of a product and a sum, if both have it."""
PRODUCT = rf'@"(?:{basic.multiply.__name__}|{basic.square.__name__})\.[0-9a-f]+"'
SYMBOL = re.compile(PRODUCT)
RESULT = re.compile(rf"(%\S+) = call [^@]*{PRODUCT}")
DIFFERENCE = re.compile(
    rf'(@"{basic.subtract.__name__}\.[0-9a-f]+")\((?:<[^>]*>|\w+) (%\S+), (?:<[^>]*>|\w+) (%\S+)\)'
)
NUMBER = re.compile(r"\b0x([0-9A-F]{16})\b")
LARGEST = 64
"""Exponents of powers of two that are no way to an overflow or a subnormal number."""


def rounded(library: Library, text: str, *, all_products: bool = False) -> str:
    """A text that calls functions of a library: of products, such as are not joined."""
    return "\n".join(
        line
        if not all_products and _is_exact(line)
        else SYMBOL.sub(lambda found: _apart(library, found[0]), line)
        for line in text.split("\n")
    )


def with_differences(library: Library, text: str) -> str:
    """The same for differences of two products alone."""
    products = set(RESULT.findall(text))

    def own(found: "re.Match[str]") -> str:
        symbol, left, right = found.groups()
        both = left in products and right in products
        return found[0].replace(symbol, _apart(library, symbol), 1) if both else found[0]

    return DIFFERENCE.sub(own, text)


def _apart(library: Library, symbol: str) -> str:
    """A function whose instructions are not joined with others."""
    name = f'{symbol[:-1]}.rounded"'
    if name not in library.definitions:
        definition = library.definitions[symbol]
        body = definition.text.replace(symbol, name, 1).replace(FUSED, " ")
        library.definitions[name] = replace(definition, symbol=name, text=body)
    return name


def _is_exact(line: str) -> bool:
    """Whether one factor of a product is written out as a power of two."""
    return any(_is_power(struct.unpack(">d", bytes.fromhex(one))[0]) for one in NUMBER.findall(line))


def _is_power(number: float) -> bool:
    part, exponent = math.frexp(number)
    return abs(part) == 0.5 and abs(exponent) <= LARGEST
