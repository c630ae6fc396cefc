"""The package as text: what files hold, their sizes, and the names that are promised."""

import ast
import functools
import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import rows_of_tests
from cases import Failures

import jitkernels as jk
from jitkernels.attrs.schema import registry
from jitkernels.attrs.schema.base import schemas

PACKAGE = Path(jk.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.fixture(autouse=True, scope="module")
def trees() -> Iterator[None]:
    """Syntax trees of all files: a million objects, excluded from garbage collection and freed afterwards."""
    gc.disable()
    yield
    nodes_of.cache_clear()
    parsed.cache_clear()
    gc.enable()


def each_of(paths: Sequence[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make a test of one file a test of several: a test for each file would cost more to collect than to run."""

    def of_all(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            failures = Failures()
            for path in paths:
                with failures.gathered(str(path)):
                    check(path)
            failures.tell()

        test.__doc__ = check.__doc__
        return test

    return of_all


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, which several tests look at."""
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path: Path) -> list[tuple[ast.AST, bool]]:
    """Everything in a file, and whether it runs when the file is imported."""
    found: list[tuple[ast.AST, bool]] = [(parsed(path), True)]
    for node, at_once in found:  # which grows meanwhile
        inside = at_once and not _is_function(node)
        found += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def imported_by(path: Path) -> list[tuple[str, bool]]:
    """Full names of what a file imports anywhere, and whether it does so when it is imported itself."""
    found: list[tuple[str, bool]] = []
    for node, at_once in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, at_once) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found += [(f"{node.module}.{alias.name}", at_once) for alias in node.names]
    return found


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def test_every_row_has_reference_and_generated_kernel() -> None:
    """Every family of rows has its modules in refer and gen, and these folders hold nothing else."""
    own = [row.__module__ for row in schemas.values() if row.__module__.startswith("jitkernels.attrs.")]
    families = {f"{module.rpartition('.')[2]}.py" for module in own} | {"__init__.py", "fused.py"}
    for folder in ("refer", "gen"):
        assert {path.name for path in (PACKAGE / folder).glob("*.py")} <= families
        assert [path for path in (PACKAGE / folder).iterdir() if path.is_dir()] in (
            [],
            [PACKAGE / folder / "__pycache__"],
        )
    assert {path.name for path in (PACKAGE / "refer").glob("*.py")} == families
    assert all("gen" in registry.implementations(row) for row in [*schemas.values()] if row.__module__ in own)
    assert {path.name for path in (PACKAGE / "more").glob("*.py")} == {"__init__.py"}


@each_of([path for path in FILES if "refer" in path.parts])
def test_references_are_plain_numpy(path: Path) -> None:
    """References define what kernels compute: they import only NumPy, substitutes for what it lacks, and schemas."""
    imported = {name for name, _ in imported_by(path)}
    assert {name.split(".")[0] for name in imported} - {"jitkernels"} <= {"numpy", *sys.stdlib_module_names}
    own = {
        name
        for name in imported
        if name.startswith("jitkernels.") and not name.startswith(("jitkernels.attrs.", "jitkernels.refer."))
    }
    assert own <= {"jitkernels.compiler.ir.special_functions"}


TREE = Path(__file__).parents[2]


@each_of([*FILES, *sorted(TREE.glob("tests/**/*.py")), *sorted(TREE.glob("bench/*.py"))])
def test_size_and_docstring(path: Path) -> None:
    """Files have at most 400 lines, and a docstring."""
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(parsed(path)), "no docstring"


@each_of(FILES)
def test_no_pickle_exec_or_eval(path: Path) -> None:
    """But where `exec` builds records from field names, or functions for other compilers and numba."""
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    assert not forbidden & {name.split(".")[0] for name, _ in imported_by(path)}
    calls = [node.func for node, _ in nodes_of(path) if isinstance(node, ast.Call)]
    names = {function.id for function in calls if isinstance(function, ast.Name)}
    makers = (
        "core/frozen_dataclass.py",
        "benchmarks/peers/compiled.py",
        "dispatch/numba_extension/entry_compiler.py",
        "codegen/numba_lowering.py",
    )
    allowed = {"exec"} if path in [PACKAGE / maker for maker in makers] else set()
    assert not ({"eval", "exec", "__import__"} & names) - allowed
    attributes = {(f.value.id, f.attr) for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)}
    assert not {("os", "system"), ("os", "popen"), ("np", "load"), ("yaml", "load")} & attributes


def test_readme_lists_every_part() -> None:
    """The layout lists every folder and module of the package, and nothing else."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    table = readme.partition("## Layout")[2].partition("The same family")[0]
    named = {
        name.removeprefix("jitkernels/").strip("/") for name in re.findall(r"`(jitkernels/[^`]+|[^`/]+\.pyi?)`", table)
    }
    there = {path.name for path in PACKAGE.iterdir() if not path.name.startswith(("__", "py.typed"))}
    assert {name.partition("/")[0] for name in named} - {"tests", "bench", "__init__.pyi"} == there


def test_all_lists_the_public_names() -> None:
    """``__all__`` is sorted, and holds exactly the public names."""
    promised = list(jk.__all__)
    own = [row for row in schemas.values() if row.__module__.startswith("jitkernels.")]
    functions = {row.kernel_type.name.lower() for row in own}
    classes = {row.__name__ for row in own}
    fixed = [name for name in promised if name not in classes | functions]
    assert fixed == sorted(fixed)
    assert [name for name in promised if name in classes] == sorted(classes)
    assert [name for name in promised if name in functions] == sorted(functions)
    assert all(hasattr(jk, name) for name in promised)
    left = rows_of_tests.unknown_names(jk)
    assert not left, f"not in __all__: {left}"
    assert functions | set(promised) <= set(dir(jk))
    for name in functions:
        assert callable(getattr(jk, name))


def test_every_error_has_one_base() -> None:
    """Users can catch all errors by one base, or each as the built-in exception that NumPy would raise."""
    errors = [value for value in vars(jk.errors).values() if isinstance(value, type)]
    assert len(errors) > 5
    for error in errors:
        assert issubclass(error, jk.errors.JitKernelsError)
        assert error.__doc__
        if error is not jk.errors.JitKernelsError:
            assert len(error.__mro__) > 4, f"{error.__name__} derives from no built-in exception"
