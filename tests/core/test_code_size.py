"""Sizes that a reader can take in: lines and parameters of a function, modules of a folder.

Tables hold what still exceeds a limit, by folder. They may only shrink: lower them when you mend some, with what
`python tests/core/test_code_size.py` prints.
"""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FUNCTION_LINES, PARAMETERS, MODULES = 60, 7, 24
"""The most lines of a function, its most parameters, and the most modules of a folder; `test_imports` limits files."""
BENCHMARK_SUBJECTS = {
    f"jitkernels/benchmarks/long_functions/{name}.py:{name}"
    for name in ("arrays", "helped", "nests", "particles", "scalars")
}
"""Functions that are long on purpose: the benchmark `long-programs` measures how long they take to compile."""
NUMPY_SIGNATURES = ("jitkernels/compiler/capture/numpy/", "jitkernels/patching/replacements/")
"""Folders whose functions take what functions of NumPy and other packages take."""
PUBLISHED_SIGNATURES = {
    "jitkernels/benchmarks/peers/adam.py:adam",
    "jitkernels/benchmarks/peers/adam.py:adamw",
    "jitkernels/benchmarks/peers/convolution.py:conv2d",
    "jitkernels/benchmarks/peers/pooling.py:avg_pool2d",
    "jitkernels/benchmarks/peers/recurrence.py:lstm",
    "jitkernels/tools/cli/app.py:bench",
    "jitkernels/tools/cli/app.py:docs",
}
"""Functions that take what an everyday function takes, whose equivalents they are, or the options of a command."""
LONG_FUNCTIONS: dict[str, int] = {}
"""Functions of more than 60 lines that still stand, by folder."""
WIDE_FUNCTIONS: dict[str, int] = {
    "jitkernels/compiler/api": 1,
    "jitkernels/compiler/dispatch": 2,
    "jitkernels/microkernels/fft": 2,
    "jitkernels/microkernels/reduction": 1,
    "jitkernels/torch": 1,
    "jitkernels/torch/operators": 12,
}  # fmt: skip
"""Functions of more than 7 parameters that still stand, by folder."""
FAMILIES = {
    "jitkernels/attrs", "jitkernels/refer", "jitkernels/gen", "jitkernels/more/numba", "jitkernels/more/mix",
    "jitkernels/more/mkl", "jitkernels/more/openblas", "jitkernels/more/onednn", "jitkernels/more/intrinsic",
    "jitkernels/benchmarks/peers", "jitkernels/benchmarks/entries", "jitkernels/benchmarks/science",
    "jitkernels/microkernels/maths",
    "tests/support/oracles", "tests/support/mistakes",
}  # fmt: skip
"""Folders that are tables: one module for each family of kernels, function or benchmark."""
CROWDED_FOLDERS: dict[str, int] = {
    "tests/compiler/codegen": 28,
    "tests/compiler/dispatch": 28,
    "tests/support": 25,
}  # fmt: skip
"""Other folders of more than 24 modules that still stand, and how many they have."""


class Function(NamedTuple):
    """A function by `path:name`, with its lines and parameters."""

    label: str
    lines: int
    parameters: int


def functions_of(path: str, text: str) -> Iterator[Function]:
    """Yield all functions of a module, those inside of functions and classes too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            taken = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
            yield Function(f"{path}:{node.name}", (node.end_lineno or 0) - node.lineno + 1, len(taken))


@cache
def texts() -> dict[str, str]:
    """Return the Python files of the package, its tests and benchmarks, by path."""
    files = [file for folder in ("jitkernels", "tests", "bench") for file in sorted((ROOT / folder).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def folder_of(path: str) -> str:
    """Return the folder under which a file is counted: its own, at most three deep."""
    return "/".join(path.split("/")[:-1][:3])


@cache
def offenders() -> tuple[list[str], list[str]]:
    """Return the labels of functions of the package that are too long, and of those with too many parameters."""
    every = [
        function
        for path, text in texts().items()
        if path.startswith("jitkernels/")
        for function in functions_of(path, text)
    ]
    long = [one.label for one in every if one.lines > FUNCTION_LINES and one.label not in BENCHMARK_SUBJECTS]
    wide = [one.label for one in every if one.parameters > PARAMETERS and not one.label.startswith(NUMPY_SIGNATURES)]
    return long, [label for label in wide if label not in PUBLISHED_SIGNATURES]


def crowded() -> dict[str, int]:
    """Return the number of modules of each folder that has too many and is no table of families."""
    modules = Counter(path.rpartition("/")[0] for path in texts())
    return {folder: count for folder, count in modules.items() if count > MODULES and folder not in FAMILIES}


def grown(labels: list[str], allowed: dict[str, int]) -> dict[str, list[str]]:
    """Return the labels of each folder that has more of them than its table allows."""
    by_folder = defaultdict(list)
    for label in labels:
        by_folder[folder_of(label)].append(label)
    return {folder: found for folder, found in by_folder.items() if len(found) > allowed.get(folder, 0)}


def test_no_function_is_too_long() -> None:
    assert not grown(offenders()[0], LONG_FUNCTIONS)


def test_no_function_has_too_many_parameters() -> None:
    assert not grown(offenders()[1], WIDE_FUNCTIONS)


def test_no_folder_has_too_many_modules() -> None:
    assert not {folder: count for folder, count in crowded().items() if count > CROWDED_FOLDERS.get(folder, MODULES)}


@pytest.mark.per_push
@pytest.mark.parametrize("label", sorted(BENCHMARK_SUBJECTS | PUBLISHED_SIGNATURES))
def test_exceptions_still_exist(label: str) -> None:
    """An exception that is no longer needed is deleted."""
    path = label.split(":")[0]
    limit = (FUNCTION_LINES, 0) if label in BENCHMARK_SUBJECTS else (0, PARAMETERS)
    assert [one for one in functions_of(path, texts()[path]) if one.label == label and one[1:] > limit]


def test_sizes_are_measured() -> None:
    text = "async def f(a, /, b, *, c):\n    class A:\n        def g(self): ...\n    return A\n"
    assert [*functions_of("m.py", text)] == [("m.py:f", 4, 3), ("m.py:g", 1, 1)]
    assert grown(["a/b.py:f", "a/b.py:g"], {"a": 1}) == {"a": ["a/b.py:f", "a/b.py:g"]}
    assert not grown(["a/b.py:f"], {"a": 1})


if __name__ == "__main__":
    for name, found in zip(("LONG_FUNCTIONS", "WIDE_FUNCTIONS"), offenders(), strict=True):
        print(f"{name} = {dict(sorted(Counter(map(folder_of, found)).items()))}")  # noqa: T201  # a command
    print(f"CROWDED_FOLDERS = {crowded()}")  # noqa: T201
