"""Table of the scalar maths functions by operation and dtype; modules are imported lazily."""

import importlib
from collections.abc import Callable
from typing import Any

MODULES: dict[str, tuple[str, str]] = {
    **{name: (name, name) for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "hypot", "sin", "cos", "tan", "tanh",
        "erf", "erfc", "gamma", "lgamma", "digamma",
        "sigmoid", "softplus", "log_hypot", "logaddexp", "logaddexp2", "fmod", "ldexp",
    )},
    "floor_divide": ("floor_division", "floor_divide"),
    "remainder": ("floor_division", "remainder"),
    "nextafter": ("nextafter", "nextafter"),
    "spacing": ("nextafter", "spacing"),
    "power": ("pow", "pow"),
    "sinh": ("hyperbolic", "sinh"),
    "cosh": ("hyperbolic", "cosh"),
    "arcsin": ("asin", "asin"),
    "arccos": ("acos", "acos"),
    "arctan": ("atan", "atan"),
    "arctan2": ("atan2", "atan2"),
    "arcsinh": ("asinh", "asinh"),
    "arccosh": ("acosh", "acosh"),
    "arctanh": ("atanh", "atanh"),
    "libm_exp": ("libm", "libm_exp"),
    "libm_log": ("libm", "libm_log"),
    "libm_log1p": ("libm", "libm_log1p"),
}  # fmt: skip
"""NumPy name (where there is one): module of this folder, and function name there without the dtype."""


def function(name: str, dtype: str) -> Callable[..., Any] | None:
    """Return the function for one dtype; None where there is none."""
    if name not in MODULES:
        return None
    module, stem = MODULES[name]
    return getattr(importlib.import_module(f"jitkernels.microkernels.maths.{module}"), f"{stem}_{dtype}", None)
