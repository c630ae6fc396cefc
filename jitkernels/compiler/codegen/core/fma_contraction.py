"""Limit FMA contraction: round products before they are added, as NumPy and Python do.

Programs with loops must compute Python's numbers, which may decide branches, and small differences grow from
iteration to iteration. Two kinds of products may be contracted nevertheless: those inside of functions such as
``tanh``, whose error bounds are measured so, and products with a power of two, which are exact unless they overflow
or are subnormal.

Without loops products are contracted, except in differences of two products: NumPy's difference of equal products is
zero, as in ``b * b - 4 * a * c`` at a double root, and contracted it would be a rounding error of either sign.
"""

import math
import re
import struct
from dataclasses import replace

from jitkernels.codegen.python.simd_library import Library
from jitkernels.microkernels.maths import basic

CONTRACT_FLAG = " contract "
"""The fast-math flag that allows contraction of a product and a sum, if both have it."""
ANY_ORDER_FLAG = " reassoc "
"""The fast-math flag that allows another order of the terms of a sum."""
PRODUCT = rf'@"(?:{basic.multiply.__name__}|{basic.square.__name__})\.[0-9a-f]+"'
SYMBOL = re.compile(PRODUCT)
RESULT = re.compile(rf"(%\S+) = call [^@]*{PRODUCT}")
DIFFERENCE = re.compile(rf'(@"{basic.subtract.__name__}\.[0-9a-f]+")\((?:<[^>]*>|\w+) (%\S+), (?:<[^>]*>|\w+) (%\S+)\)')
NUMBER = re.compile(r"\b0x([0-9A-F]{16})\b")
MAX_EXPONENT = 64
"""Exponents of powers of two that lead to neither overflow nor subnormal numbers."""


def uncontract_products(library: Library, text: str, *, all_products: bool = False) -> str:
    """Return `text` with calls of products that are not contracted; all of them, or those that are not exact."""
    return "\n".join(
        line
        if not all_products and _is_exact(line)
        else SYMBOL.sub(lambda symbol: _uncontracted(library, symbol[0]), line)
        for line in text.split("\n")
    )


def uncontract_differences(library: Library, text: str) -> str:
    """Return `text` with uncontracted differences of two products."""
    products = set(RESULT.findall(text))

    def own(match: "re.Match[str]") -> str:
        symbol, left, right = match.groups()
        both = left in products and right in products
        return match[0].replace(symbol, _uncontracted(library, symbol), 1) if both else match[0]

    return DIFFERENCE.sub(own, text)


def _uncontracted(library: Library, symbol: str) -> str:
    """Define a copy of a library function without the contraction flag, and return its symbol."""
    name = f'{symbol[:-1]}.rounded"'
    if name not in library.definitions:
        definition = library.definitions[symbol]
        body = definition.text.replace(symbol, name, 1).replace(CONTRACT_FLAG, " ")
        library.definitions[name] = replace(definition, symbol=name, text=body)
    return name


def _is_exact(line: str) -> bool:
    """Return whether one factor of a product is a power of two constant."""
    return any(_is_power_of_two(struct.unpack(">d", bytes.fromhex(digits))[0]) for digits in NUMBER.findall(line))


def _is_power_of_two(number: float) -> bool:
    part, exponent = math.frexp(number)
    return abs(part) == 0.5 and abs(exponent) <= MAX_EXPONENT
