"""The import graph of the package, read from its syntax, and the layers that order it."""

import ast
import functools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[2]
LAYERS = (
    *("errors", "core", "attrs.schema", "attrs", "codegen", "runtime", "microkernels", "selection", "dispatch"),
    *("tuning", "compiler.ir", "compiler.passes", "compiler.autodiff", "compiler.transforms", "compiler.schedule"),
    *("compiler.memory", "compiler.codegen", "compiler.lowering", "compiler.capture", "compiler.dispatch"),
    *("compiler.diagnostics", "compiler.export", "compiler.api", "compiler", "xp", "refer", "gen", "more"),
    *("patching", "dask_arrays", ""),
    *("onnx", "torch", "tools", "benchmarks", "tools.cli", "__main__"),
)
"""From the bottom up; "" is ``jitkernels/__init__.py``. A layer imports from lower ones and from itself."""
FORBIDDEN = {
    "core": ("attrs", "codegen", "runtime"),
    "codegen": ("attrs",),
    "refer": ("runtime", "tuning", "selection", "dispatch"),
    "gen": ("tuning", "more", "refer"),
    "more": ("tuning", "refer"),
}
"""What a layer must not import though it lies above it: the machinery below the implementations is two trees."""

IMPORTING = ast.Import, ast.ImportFrom, ast.Constant
"""Nodes that may import a module."""


def imports_between(files: Sequence[Path], package: Path) -> dict[str, set[str]]:
    """For each module, the modules that it imports, at once, inside a function, or by a string that names them."""
    names = {".".join(file.relative_to(package.parent).with_suffix("").parts): file for file in files}
    modules = {name.removesuffix(".__init__"): file for name, file in names.items()}
    found: dict[str, set[str]] = {}
    for module, file in modules.items():
        text = file.read_text()
        tree = ast.parse(text)
        tree = without_type_checking(tree) if "TYPE_CHECKING" in text else tree
        targets: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, IMPORTING):
                targets |= imported(node, modules.keys())
        found[module] = targets - {module}
    return found


def imported(node: ast.AST, modules: AbstractSet[str]) -> set[str]:
    """The modules that one node of a syntax tree imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in modules}
    if isinstance(node, ast.ImportFrom):
        below = [f"{node.module}.{alias.name}" for alias in node.names]
        named = [name if name in modules else str(node.module) for name in below]
        return {name for name in named if name in modules}
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
        return {node.value} if node.value in modules else set()
    return set()


def without_type_checking(tree: ast.Module) -> ast.Module:
    """A module without what only type checkers import."""

    class Dropped(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> Any:
            return None if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    Dropped().visit(tree)
    return tree


def layer_of(module: str) -> str:
    """The layer of a module: the longest entry of `LAYERS` that it is, or that it lies in."""
    name = module.removeprefix("jitkernels").removeprefix(".")
    entries = [layer for layer in LAYERS if layer and (name == layer or name.startswith(f"{layer}."))]
    if name and not entries:
        raise AssertionError(f"{name!r} belongs to no layer: add it to LAYERS")
    return max(entries, key=len, default="")


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, or nothing."""
    finished: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module not in finished:
            for other in sorted(imports[module]):
                if circle := visit(other, [*path, module]):
                    return circle
            finished.add(module)
        return []

    return next((circle for module in imports if (circle := visit(module, []))), [])


@functools.cache
def imports_of_package() -> dict[str, set[str]]:
    """What every module of jitkernels imports."""
    return imports_between(sorted(PACKAGE.rglob("*.py")), PACKAGE)


def edges_between(imports: Mapping[str, set[str]], groups: Mapping[str, str]) -> dict[str, set[str]]:
    """For each group of modules, the other groups that its modules import; `groups` maps modules to groups."""
    edges: dict[str, set[str]] = {group: set() for group in groups.values()}
    for module, targets in imports.items():
        if module in groups:
            edges[groups[module]] |= {groups[target] for target in targets if target in groups}
    return {group: targets - {group} for group, targets in edges.items()}


def transitive_reduction(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The edges of an acyclic graph that no longer path implies."""
    reached: dict[str, set[str]] = {}

    def below(group: str) -> set[str]:
        if group not in reached:
            reached[group] = edges[group].union(*map(below, edges[group]))
        return reached[group]

    return {
        group: {one for one in targets if not any(one in below(other) for other in targets)}
        for group, targets in edges.items()
    }
