"""``jitkernels explain file.py:function``: what becomes of a compiled function for arguments that are described."""

import ast
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

import jitkernels
from jitkernels.cli import output
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.frontends.jit import JitFunction

ARRAY = re.compile(r"(bool|(?:float|int|uint)[0-9]+)\[([0-9, ]*)\]")


def run(place: str, described: Sequence[str]) -> int:
    """Print what becomes of a function."""
    function = found(place)
    compiled = function if isinstance(function, JitFunction) else jitkernels.jit(function)
    positional = [argument(text) for text in described if "=" not in text]
    named = {
        name: argument(text) for name, _, text in (one.partition("=") for one in described if "=" in one)
    }
    output.console().print(escape(str(compiled.explain(*positional, **named))), soft_wrap=True)
    return 0


def found(place: str) -> Any:
    """The function that ``file.py:function`` means. Raises UnknownNameError where there is none."""
    path, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise UnknownNameError(
            f"{place!r}: expected a Python file, a colon and a function in it; there is no file {path!r}"
        )
    value: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(value)
    for part in name.split("."):
        if not hasattr(value, part):
            raise UnknownNameError(
                f"{place!r}: expected a function of the file, got {name!r}, which it does not have"
            )
        value = getattr(value, part)
    return value


def argument(text: str) -> Any:
    """What ``float32[128, 256]`` or ``2.5`` means."""
    array = ARRAY.fullmatch(text)
    if array is not None:
        shape = [int(one) for one in array[2].split(",") if one.strip()]
        return np.ones(shape, array[1])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise ArgumentError(
            f"{text!r}: expected an array such as float32[128,256], or a value as Python writes it"
        ) from None
