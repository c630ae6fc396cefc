"""Where LLVM text carries the Python functions that numba compiles: as comments, part of the key of the object.

A process that finds the object in the cache never reads them; one that builds it links what numba makes of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.core import versions
from jitkernels.core.frozen_dataclass import frozen_dataclass

MARK = ";numba "


@frozen_dataclass
class PythonFunction:
    """A printed function: its LLVM symbol, its text, and what it takes.

    `arguments`: names and types, ``float32*`` or ``int64``; `alone`: names of pointers that no other argument overlaps.
    `functions`: the operand dtypes and the result of what it calls, which `definitions` defines in LLVM IR. `returns`:
    the type of what it returns, if that is a number.
    """

    symbol: str
    text: str
    arguments: tuple[tuple[str, str], ...]
    alone: frozenset[str]
    functions: Mapping[str, tuple[tuple[str, ...], str]]
    definitions: str
    returns: str = ""

    def comment(self) -> str:
        """The function as one line of LLVM text."""
        import json  # not for those who print nothing

        content = {
            "numba": numba_version(),
            "symbol": self.symbol,
            "text": self.text,
            "arguments": self.arguments,
            "alone": sorted(self.alone),
            "functions": self.functions,
            "definitions": self.definitions,
            "returns": self.returns,
        }
        return MARK + json.dumps(content)

    def declaration(self) -> str:
        """The declaration of the compiled function: numba's status, then places for a result and an exception."""
        kinds = ["ptr", "ptr", *("ptr" if kind.endswith("*") else "i64" for _, kind in self.arguments)]
        return f'declare i32 @"{self.symbol}"({", ".join(kinds)})'


def read(line: str) -> PythonFunction:
    """The function that a comment holds."""
    import json

    content: dict[str, Any] = json.loads(line.removeprefix(MARK))
    functions = {name: (tuple(kinds), dtype) for name, (kinds, dtype) in content["functions"].items()}
    arguments = tuple((name, kind) for name, kind in content["arguments"])
    return PythonFunction(
        content["symbol"],
        content["text"],
        arguments,
        frozenset(content["alone"]),
        functions,
        content["definitions"],
        content["returns"],
    )


def functions_in(text: str) -> list[PythonFunction]:
    """All functions that some LLVM text carries."""
    if MARK not in text:
        return []
    return [read(line) for line in text.split("\n") if line.startswith(MARK)]


def numba_version() -> str:
    """The version that decides the code; "absent" where numba is not installed."""
    return versions.version("numba")


def python_of(functions: Sequence[PythonFunction]) -> str:
    """A readable module of printed functions."""
    names = sorted({name for one in functions for name in one.functions})
    head = [
        "import numpy as np",
        "from numpy import complex64, complex128, float32, inf, int8, int16, int32, nan, uint8, uint16, uint32, uint64",
    ]
    if names:
        listed = ", ".join(names)
        head.append(f"from jitkernels.compiler.codegen.numba.python_scalars import {listed}")
    return "\n\n\n".join(["\n".join(head), *(one.text for one in functions)]) + "\n"
