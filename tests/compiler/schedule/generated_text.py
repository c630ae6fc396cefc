"""Dump the code that the compiler generates, so that a change of the compiler that must not change code can be checked.

`python tests/compiler/schedule/generated_text.py FOLDER [TARGET ...]` writes what every program of the tests and
benchmarks becomes, for several sizes and CPUs, as LLVM IR and for numba. `pytest -p generated_text`, with this folder
in PYTHONPATH and ``GENERATED_TEXT=FOLDER``, writes what tests compile. Do both in two checkouts, and compare the
folders with ``diff -rq``.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

TARGETS = {
    "host": {},
    "avx2": {"JITKERNELS_CPU_FEATURES": "-avx512f"},
    "sse": {"JITKERNELS_CPU_FEATURES": "-avx"},
    "intel": {"JITKERNELS_CPU_NAME": "emeraldrapids"},  # whose stores stall on misses
}
"""Settings of the CPU to generate code for."""
SIZES = (5, 300, 5000, 1_000_000)
"""Elements of the arguments of programs that take any number."""
HERE = Path(__file__).parents[3]
Call = tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]


def calls() -> Iterator[tuple[str, Call]]:
    """Yield names of programs, the programs, and factories of their arguments."""
    import numpy as np
    from every_program import every_program

    from jitkernels.benchmarks import long_functions, scalar_programs, small_functions
    from jitkernels.benchmarks.programs import all_programs

    yield from every_program().items()
    for (name, program), size, dtype in product(all_programs().items(), SIZES, ("float32", "float64")):
        yield f"sized.{name}.{size}.{dtype}", (program.function, partial(program.arguments, size, dtype))
    for listed in (long_functions.FUNCTIONS, scalar_programs.PROGRAMS):
        for function, make in listed.items():
            yield f"{function.__module__}.{function.__name__}", (function, make)
    small = {**small_functions.STRAIGHT, **{function.__name__: function for function in small_functions.LOOPS}}
    for name, function in small.items():
        yield f"small.{name}", (function, lambda: (np.linspace(0.0, 1.0, 50),))


def dump(folder: Path) -> None:
    """Write a file for each program and backend: its code, or why it has none."""
    import jitkernels as jk

    folder.mkdir(parents=True, exist_ok=True)
    for name, (function, make) in calls():
        for backend in ("native", "numba"):
            try:
                text = jk.jit(function).source(*make(), backend=backend)
            except jk.errors.JitKernelsError as error:
                text = str(error)
            (folder / f"{name}.{backend}").write_text(text.replace(str(HERE), ""))


def pytest_configure() -> None:
    """Write the code of every segment to a file whose name is the test's, and a number."""
    from jitkernels.compiler.codegen.core import module_text

    folder, plain, counts = Path(os.environ["GENERATED_TEXT"]), module_text.module_source, dict[str, int]()
    folder.mkdir(parents=True, exist_ok=True)

    def noted(name: str, text: str, *rest: Any, **options: Any) -> Any:
        test = re.sub(r"[^\w.-]+", "_", os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0])[-180:]
        counts[test] = counts.get(test, 0) + 1
        (folder / f"{test}.{counts[test]}").write_text(text)
        return plain(name, text, *rest, **options)

    module_text.module_source = noted


def main(folder: Path, targets: Sequence[str]) -> None:
    """Dump for each target in a process of its own, two at a time."""
    remaining = [*targets]
    while remaining:
        started = []
        for name in remaining[:2]:
            command = [sys.executable, "-P", __file__, "--here", str(folder / name)]
            started.append(subprocess.Popen(command, env={**os.environ, "JITKERNELS_TUNE": "off", **TARGETS[name]}))
        if max(process.wait() for process in started):
            sys.exit(1)
        remaining = remaining[2:]


if __name__ == "__main__":
    tests = HERE / "tests"
    sys.path += [str(path) for path in sorted({path.parent for path in tests.rglob("*.py")})]
    if sys.argv[1] == "--here":
        dump(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:] or [*TARGETS])
