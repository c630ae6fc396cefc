"""Which function of which type the scalar maths has, by name; each module is imported when a function of it is asked for."""

import importlib
from collections.abc import Callable
from typing import Any

MODULES: dict[str, str] = {
    "exp": "exp", "sigmoid": "sigmoid", "tanh": "tanh",
}  # fmt: skip
"""Names, and the modules of `jitkernels.maths` that have ``name_float32`` and ``name_float64``."""


def function(name: str, dtype: str) -> Callable[..., Any] | None:
    """A function for one type; None where there is none."""
    if name not in MODULES:
        return None
    module = importlib.import_module(f"jitkernels.maths.{MODULES[name]}")
    return getattr(module, f"{name}_{dtype}", None)
