"""The tables of what traced arrays do, filled by the modules that say so: who traces imports this."""

from jitkernels.frontends import (
    arranging,
    choosing,
    contraction,
    creation,
    floats,
    functions,
    indexing,
    joining,
    lacking,
    moments,
    numbers,
    reductions,
    shaping,
    universal,
)

__all__ = [
    "arranging",
    "choosing",
    "contraction",
    "creation",
    "floats",
    "functions",
    "indexing",
    "joining",
    "lacking",
    "moments",
    "numbers",
    "reductions",
    "shaping",
    "universal",
]
