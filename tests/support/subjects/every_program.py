"""All programs to compile: those of the tests and those of the benchmarks, with their arguments."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from control_arrays import ARRAYS
from control_programs import PROGRAMS
from control_slices import SLICES
from control_statements import STATEMENTS

from jitkernels.benchmarks import whole_programs
from jitkernels.benchmarks.entries import training
from jitkernels.benchmarks.programs import all_programs

ELEMENTS, ROWS = 3000, 17


def every_program() -> dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]]:
    """Return by name: a function, and a factory of its arguments, small ones."""
    programs_by_name: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {}
    for listed in (PROGRAMS, ARRAYS, STATEMENTS):
        for function, makers in listed.items():
            name = f"{function.__module__.removeprefix('control_')}.{function.__name__}"
            programs_by_name[name] = function, partial(_arguments_of, makers)
    for function, make in SLICES.items():
        programs_by_name[f"slices.{function.__name__}"] = function, partial(make, ROWS)
    for name, program in all_programs().items():
        programs_by_name[f"expressions.{name}"] = (program.function, partial(program.arguments, ELEMENTS, "float32"))
    for function, make in whole_programs.PROGRAMS.items():
        programs_by_name[f"whole.{function.__name__}"] = function, make
    for name, function in (("step", training.step), ("loss", training.loss), ("by_hand", training.by_hand)):
        programs_by_name[f"training.{name}"] = function, partial(_of_training, name)
    return programs_by_name


def _arguments_of(makers: Sequence[Callable[[], Any]]) -> tuple[Any, ...]:
    return tuple(make() for make in makers)


def _of_training(name: str) -> tuple[Any, ...]:
    layers = 20, 16, 12, 4
    state, (x, y) = training.state(layers), training.batch(9, layers)
    return (state[0], x, y) if name == "loss" else (*state, np.float32(1), x, y)
