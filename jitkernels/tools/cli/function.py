"""``jitkernels explain file.py:function``: explain how a function compiles for described arguments."""

import ast
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

import jitkernels
from jitkernels.compiler.api.jit import JitFunction
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.tools.cli import output

ARRAY = re.compile(r"(bool|(?:float|int|uint)[0-9]+)\[([0-9, ]*)\]")


def run(path: str, described: Sequence[str], svg: Path | None = None) -> int:
    """Print how a function compiles for the described arguments; draw its graph if `svg` names a file."""
    function = load_function(path)
    compiled = function if isinstance(function, JitFunction) else jitkernels.jit(function)
    positional = [argument(text) for text in described if "=" not in text]
    named = {name: argument(text) for name, _, text in (text.partition("=") for text in described if "=" in text)}
    output.console().print(escape(str(compiled.explain(*positional, **named))), soft_wrap=True)
    if svg is not None:
        svg.write_text(str(compiled.graph(*positional, **named)), encoding="utf-8")
    return 0


def load_function(target: str) -> Any:
    """Return the function that ``file.py:function`` names. Raises UnknownNameError if it does not exist."""
    path, _, name = target.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise UnknownNameError(f"{target!r}: expected file.py:function; there is no file {path!r}")
    value: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(value)
    for part in name.split("."):
        if not hasattr(value, part):
            raise UnknownNameError(
                f"{target!r}: expected a function of the file, got {name!r}, which it does not define"
            )
        value = getattr(value, part)
    return value


def argument(text: str) -> Any:
    """Parse a described argument such as ``float32[128, 256]`` or ``2.5``."""
    array = ARRAY.fullmatch(text)
    if array is not None:
        shape = [int(extent) for extent in array[2].split(",") if extent.strip()]
        return np.ones(shape, array[1])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ArgumentError(f"{text!r}: expected an array such as float32[128,256], or a Python literal") from None
