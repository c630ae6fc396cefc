"""The package as text: who imports whom, sizes, and names that are promised."""

import ast
import functools
import gc
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import Failures

import jitkernels as jk
from jitkernels import registry
from jitkernels.attrs.base import rows

PACKAGE = Path(jk.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        *["errors", "locks", "kept", "dtypes", "bfloat16", "layouts", "disk", "settings"],
        *["machine", "processor", "packs", "kernel_types", "plugins"],
        *["patience", "records", "checksums", "states", "handlers"],
    ),
    ("signature",),
    ("attrs",),
    ("accuracy",),
    ("registry", "implementation"),
    ("peers",),
    ("native",),
    ("tuning",),
    ("maths",),
    ("loops",),
    ("shipped", "tables", "pins"),
    ("choosing",),
    ("kernel", "explanation", "documentation"),
    ("kernel_funcs", "converting"),
    (
        *["functions", "results", "dispatch_table", "plain_calls", "options", "testing", "coverage"],
        *["docs", "measuring", "packing"],
    ),
    ("ways",),
    ("ledger", "building"),
    ("earning",),
    ("graph",),
    ("bundles",),
    ("frontends",),
    ("named",),
    ("from_reference",),
    ("refer", "gen", "more"),
    ("",),
    ("contest", "benchmark"),
    ("cli", "tour", "stub", "__main__"),
)
"""From the bottom up; "" is ``jitkernels/__init__.py``. A layer imports from lower ones and from itself."""
FORBIDDEN = {
    "native": ("signature", "attrs", "registry"),
    "tuning": ("native",),
    "maths": ("attrs", "registry", "tuning"),
    "loops": ("tuning",),
    "refer": ("native", "tuning", "machine", "disk"),
    "gen": ("tuning", "more", "refer"),
    "more": ("tuning", "refer"),
    "attrs": ("native", "tuning"),
    "peers": ("native", "registry"),
    "graph": ("registry", "tuning"),
    "frontends": ("attrs", "registry", "tuning", "choosing"),
}
"""What a layer must not import though it lies above it: the machinery below the implementations is two trees."""


@pytest.fixture(autouse=True, scope="module")
def trees() -> Iterator[None]:
    """Trees of all files: a million objects, which nobody looks through for garbage, and which go afterwards."""
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


def layer_of(part: str) -> int:
    found = [number for number, layer in enumerate(LAYERS) if part in layer]
    assert found, f"{part!r} belongs to no layer: add it to LAYERS"
    return found[0]


def part_of(path: Path) -> str:
    """The folder or module directly below the package that a file belongs to."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


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


def own_parts(path: Path) -> set[str]:
    """Parts of the package that a file imports; a name of ``jitkernels`` itself counts as its ``__init__``."""
    parts = set()
    for name, _ in imported_by(path):
        pieces = name.split(".")
        if pieces[0] == "jitkernels":
            below = pieces[1] if len(pieces) > 1 else ""
            exists = (PACKAGE / below).is_dir() or (PACKAGE / f"{below}.py").exists()
            parts.add(below if exists else "")
    return parts


def test_folders_are_the_table_of_coverage() -> None:
    """Every family of rows has its references, every row its generated kernel, and nothing else lies beside them."""
    own = [row.__module__ for row in rows.values() if row.__module__.startswith("jitkernels.attrs.")]
    families = {f"{module.rpartition('.')[2]}.py" for module in own} | {"__init__.py", "fused.py"}
    for folder in ("refer", "gen"):
        assert {path.name for path in (PACKAGE / folder).glob("*.py")} <= families
        assert [path for path in (PACKAGE / folder).iterdir() if path.is_dir()] in (
            [],
            [PACKAGE / folder / "__pycache__"],
        )
    assert {path.name for path in (PACKAGE / "refer").glob("*.py")} == families
    assert all("gen" in registry.implementations(row) for row in [*rows.values()] if row.__module__ in own)
    assert {path.name for path in (PACKAGE / "more").glob("*.py")} == {"__init__.py"}


@each_of(FILES)
def test_imports_go_downwards(path: Path) -> None:
    part = part_of(path)
    for other in own_parts(path):
        assert layer_of(other) <= layer_of(part), f"{part or 'the package'} imports {other or 'the package'}"
        assert other not in FORBIDDEN.get(part, ()), f"{part} imports {other}"


def test_layers_are_all_there() -> None:
    """No layer for what no longer exists, and no part without a layer."""
    assert {part_of(path) for path in FILES} == {part for layer in LAYERS for part in layer}


def test_upward_import_would_be_noticed(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "def later():\n    from jitkernels import kernel_funcs\n    import jitkernels.cli.main\n"
    )
    assert own_parts(wrong) == {"kernel_funcs", "cli"}
    assert layer_of("kernel_funcs") > layer_of("native")
    another = tmp_path / "another.py"
    another.write_text("from jitkernels import Kernel\n")
    assert own_parts(another) == {""}


@each_of([path for path in FILES if "refer" in path.parts])
def test_references_are_plain_numpy(path: Path) -> None:
    """They define what kernels mean, so they lean on nothing but NumPy, what it lacks in its terms, and the rows."""
    imported = {name for name, _ in imported_by(path)}
    assert {name.split(".")[0] for name in imported} - {"jitkernels"} <= {"numpy", *sys.stdlib_module_names}
    assert own_parts(path) <= {"registry", "attrs", "signature", "graph"}
    assert {name for name in imported if name.startswith("jitkernels.graph")} <= {"jitkernels.graph.special"}


def without_type_checking(tree: ast.Module) -> ast.Module:
    """A module without what only type checkers import."""

    class Dropped(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> Any:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    Dropped().visit(tree)
    return tree


def imports_between(files: Sequence[Path], package: Path) -> dict[str, set[str]]:
    """For each module the modules that it imports, at once or inside a function."""
    names = {".".join(file.relative_to(package.parent).with_suffix("").parts): file for file in files}
    modules = {name.removesuffix(".__init__"): file for name, file in names.items()}
    found: dict[str, set[str]] = {}
    for module, file in modules.items():
        targets = found.setdefault(module, set())
        text = file.read_text()
        tree = ast.parse(text)
        for node in ast.walk(without_type_checking(tree) if "TYPE_CHECKING" in text else tree):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names} & modules.keys()
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    below = f"{node.module}.{alias.name}"
                    targets |= {below if below in modules else str(node.module)} & modules.keys()
        targets.discard(module)
    return found


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, or nothing."""
    finished: set[str] = set()

    def visit(module: str, way: list[str]) -> list[str]:
        if module in way:
            return [*way[way.index(module) :], module]
        if module not in finished:
            for other in sorted(imports[module]):
                if circle := visit(other, [*way, module]):
                    return circle
            finished.add(module)
        return []

    return next((circle for module in imports if (circle := visit(module, []))), [])


def test_no_import_goes_in_a_circle() -> None:
    """Neither when modules are imported nor later, inside functions."""
    imports = imports_between(FILES, PACKAGE)
    assert len(imports) == len(FILES)
    assert sum(map(len, imports.values())) > 2 * len(FILES)
    assert circle_in(imports) == []


def test_circle_would_be_noticed(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    texts = {
        "__init__": "",
        "low": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package import high\n",
        "middle": "from package import low\n",
        "high": "import package.middle\nfrom package.low import anything\n",
    }
    files = []
    for name, text in texts.items():
        files.append(package / f"{name}.py")
        files[-1].write_text(text)
    assert circle_in(imports_between(files, package)) == []
    (package / "low.py").write_text("def later():\n    from package.high import something\n")
    assert set(circle_in(imports_between(files, package))) == {"package.low", "package.high"}


TREE = Path(__file__).parent.parent


@each_of([*FILES, *sorted(TREE.glob("tests/*.py")), *sorted(TREE.glob("bench/*.py"))])
def test_size_and_docstring(path: Path) -> None:
    """Files of one idea: at most 400 lines, and a docstring that says why they exist."""
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(parsed(path)), "no docstring"


@each_of(FILES)
def test_nothing_dangerous(path: Path) -> None:
    """No pickle, and texts run only to make records of the names of fields and functions for other compilers."""
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    assert not forbidden & {name.split(".")[0] for name, _ in imported_by(path)}
    calls = [node.func for node, _ in nodes_of(path) if isinstance(node, ast.Call)]
    names = {function.id for function in calls if isinstance(function, ast.Name)}
    allowed = {"exec"} if path in (PACKAGE / "records.py", PACKAGE / "peers" / "compiled.py") else set()
    assert not ({"eval", "exec", "__import__"} & names) - allowed
    attributes = {
        (f.value.id, f.attr) for f in calls if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name)
    }
    assert not {("os", "system"), ("os", "popen"), ("np", "load"), ("yaml", "load")} & attributes


def test_readme_lists_every_part() -> None:
    """Every folder and module of the package has its place in the layout, and nothing else has."""
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    table = readme.partition("## Layout")[2].partition("The same family")[0]
    named = {name.removeprefix("jitkernels/").strip("/") for name in re.findall(r"`([^`]+)`", table)}
    there = {path.name for path in PACKAGE.iterdir() if not path.name.startswith(("__", "py.typed"))}
    assert {name.partition("/")[0] for name in named} - {"tests", "bench", "__init__.pyi"} == there


def test_promised_names() -> None:
    """``__all__`` is sorted, holds whatever is public, and nothing that is not there."""
    promised = list(jk.__all__)
    own = [row for row in rows.values() if row.__module__.startswith("jitkernels.")]
    functions = {row.kernel_type.name.lower() for row in own}
    classes = {row.__name__ for row in own}
    fixed = [name for name in promised if name not in classes | functions]
    assert fixed == sorted(fixed)
    assert [name for name in promised if name in classes] == sorted(classes)
    assert [name for name in promised if name in functions] == sorted(functions)
    assert all(hasattr(jk, name) for name in promised)
    modules = {name for name in vars(jk) if isinstance(vars(jk)[name], type(sys))}
    theirs = {
        name
        for row in rows.values()
        if row not in own
        for name in (row.__name__, row.kernel_type.name.lower())
    }
    public = {name for name in vars(jk) if not name.startswith("_")} - modules - theirs - {"Any"}
    assert public <= set(promised), f"not in __all__: {public - set(promised)}"
    assert functions | set(promised) <= set(dir(jk))
    for name in functions:
        assert callable(getattr(jk, name))


def test_every_error_has_one_base() -> None:
    """A caller can catch them all, or each as the built-in exception that NumPy would raise."""
    errors = [value for value in vars(jk.errors).values() if isinstance(value, type)]
    assert len(errors) > 5
    for error in errors:
        assert issubclass(error, jk.errors.JitKernelsError)
        assert error.__doc__
        if error is not jk.errors.JitKernelsError:
            assert len(error.__mro__) > 4, f"{error.__name__} derives from no built-in exception"
