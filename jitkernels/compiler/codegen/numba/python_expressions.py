"""Python expressions of numbers, extents and array indices."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir.symbolic_dims import Atom, Extent, Number

NAME = re.compile(r"[^0-9A-Za-z_]")
WEAK = re.compile(r"[ +\-*/%<>=&|^]")


def symbol(name: str) -> str:
    """The Python variable of a symbol."""
    return NAME.sub("_", name)


def extent_text(extent: Number) -> str:
    """An extent as an expression over the variables of its symbols."""
    if not isinstance(extent, Extent):
        return str(int(extent))
    terms = []
    for monomial, count in extent.terms.items():
        factors = [_atom(atom) for atom in monomial]
        if count != 1 or not factors:
            factors.insert(0, str(count))
        terms.append(" * ".join(factors))
    return " + ".join(terms).replace("+ -1 * ", "- ").replace("+ -", "- ")


def _atom(atom: Atom) -> str:
    if not atom.operation:
        return symbol(atom.text)
    if atom.operation == "scaled":
        return f"int({parenthesize(extent_text(atom.left))} * {atom.right!r})"
    left, right = extent_text(atom.left), extent_text(atom.right)
    if atom.operation in ("min", "max"):
        return f"{atom.operation}({left}, {right})"
    sign = "//" if atom.operation == "floordiv" else "%"
    return f"({parenthesize(left)} {sign} {parenthesize(right)})"


def parenthesize(text: str) -> str:
    """An operand: in parentheses unless it is a name, a number, a call or an element."""
    if not WEAK.search(text) or _is_one_group(text):
        return text
    return f"({text})"


def _is_one_group(text: str) -> bool:
    """Whether an expression is a name with one pair of brackets behind it, or one pair alone."""
    match = re.match(r"[A-Za-z_0-9]*[(\[]", text)
    if match is None:
        return False
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and position >= match.end() - 1:
            return position == len(text) - 1
    return False


def constant_text(value: Any, dtype: str) -> str:
    """A number of a dtype."""
    kind = NUMBERS[dtype].kind
    if kind == "bool":
        return str(bool(value))
    if kind == "float":
        number = float(value)
        shown = (
            "nan" if math.isnan(number) else f"{'-' if number < 0 else ''}inf" if math.isinf(number) else repr(number)
        )
        return shown if dtype == "float64" else f"{dtype}({shown})"
    if kind == "complex":
        parts = (constant_text(part, "float64") for part in (complex(value).real, complex(value).imag))
        return f"{dtype}(complex({', '.join(parts)}))"
    size = NUMBERS[dtype].size * 8
    number = int(value) & ((1 << size) - 1)
    if NUMBERS[dtype].is_signed and number >> (size - 1):
        number -= 1 << size
    # The largest negative number is no literal: Python negates a literal that has one bit more.
    return str(number) if dtype == "int64" and number > -(1 << 63) else f"{dtype}({number})"


def index_text(first: Number, steps: Mapping[int, Number], names: Mapping[int, str], more: Iterable[str] = ()) -> str:
    """The index of an element: its first one, a multiple of each loop variable, and what is added besides."""
    parts = []
    for loop, step in steps.items():
        text = extent_text(step)
        parts.append(names[loop] if text == "1" else f"{names[loop]} * {parenthesize(text)}")
    parts += more
    start = extent_text(first)
    if start != "0" or not parts:
        parts.insert(0, start)
    return " + ".join(parts).replace("+ -", "- ")
