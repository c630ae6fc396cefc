"""What a task of the contest is: sizes, the truth, and for each contestant a function that makes its program."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Program = Callable[[int], Any]
"""Of a size, the answer."""

NEEDS = {
    "numpy": "numpy",
    "numba": "numba",
    "jax": "jax",
    "torch": "torch",
    "tensorflow": "tensorflow",
    "triton": "triton",
    "jitkernels": "jitkernels",
}
"""The contestants, in the order in which they are told, and the module that each needs."""


@dataclass(frozen=True)
class Task:
    """One task: `error` says how far the answer for a size is from the truth.

    `programs`: for each contestant a function that imports it and gives its program, everything prepared but
    compiled nothing yet. `unit` is what sizes count.
    """

    name: str
    summary: str
    unit: str
    sizes: tuple[int, ...]
    error: Callable[[int, Any], float]
    error_words: str
    programs: dict[str, Callable[[], Program]] = field(default_factory=dict)

    def contestant(self, name: str) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
        """Register the decorated function as the one that makes the program of a contestant."""

        def register(make: Callable[[], Program]) -> Callable[[], Program]:
            self.programs[name] = make
            return make

        return register


def all_tasks() -> dict[str, Task]:
    """The tasks by name."""
    from jitkernels.contest import tasks

    modules = [
        importlib.import_module(f"{tasks.__name__}.{one.name}")
        for one in pkgutil.iter_modules(tasks.__path__)
    ]
    return {module.TASK.name: module.TASK for module in modules}


def reason_to_miss(name: str) -> str:
    """Why a contestant cannot take part here, or nothing."""
    if importlib.util.find_spec(NEEDS[name]) is None:
        return f"{NEEDS[name]} is not installed"
    if name == "triton":
        return _without_processor_of_triton()
    return ""


def _without_processor_of_triton() -> str:
    """Triton compiles for the processor that its driver finds, which on most machines is a GPU."""
    from triton.runtime import driver

    try:
        driver.active.get_current_target()
    except Exception as error:  # noqa: BLE001  # whatever it raises where there is no driver
        return f"triton finds no processor that it compiles for: {error}"
    return ""
