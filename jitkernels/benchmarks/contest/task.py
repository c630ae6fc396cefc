"""The definition of a contest task: sizes, true results, and for each contestant a function that builds its program."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Program = Callable[[int], Any]
"""Computes the result for a size."""

NEEDS = {
    "numpy": "numpy",
    "numba": "numba",
    "jax": "jax",
    "torch": "torch",
    "tensorflow": "tensorflow",
    "triton": "triton",
    "jitkernels": "jitkernels",
}
"""The contestants in display order, and the module that each needs."""


@dataclass(frozen=True)
class Task:
    """One task: `error` computes the error of the result for a size.

    `programs`: for each contestant a function that imports it and returns its program, prepared but not yet compiled.
    `unit` names what sizes count.
    """

    name: str
    summary: str
    unit: str
    sizes: tuple[int, ...]
    error: Callable[[int, Any], float]
    error_words: str
    programs: dict[str, Callable[[], Program]] = field(default_factory=dict)

    def contestant(self, name: str) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
        """Register the decorated function as the program builder of a contestant."""

        def register(make: Callable[[], Program]) -> Callable[[], Program]:
            self.programs[name] = make
            return make

        return register


def all_tasks() -> dict[str, Task]:
    from jitkernels.benchmarks.contest import tasks

    modules = [
        importlib.import_module(f"{tasks.__name__}.{entry.name}") for entry in pkgutil.iter_modules(tasks.__path__)
    ]
    return {module.TASK.name: module.TASK for module in modules}


def reason_unavailable(name: str) -> str:
    """Return why a contestant cannot take part here, or ""."""
    if importlib.util.find_spec(NEEDS[name]) is None:
        return f"{NEEDS[name]} is not installed"
    if name == "triton":
        return _without_processor_of_triton()
    return ""


def _without_processor_of_triton() -> str:
    """Return why Triton has no target: it compiles for the processor of its driver, on most machines a GPU."""
    from triton.runtime import driver

    try:
        driver.active.get_current_target()
    except Exception as error:  # noqa: BLE001  # without a driver it raises errors of any type
        return f"triton finds no supported processor: {error}"
    return ""
