"""Resolve references `module:name` to definitions, and find which definitions use which, from the syntax alone."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jitkernels.errors import UnknownNameError
from jitkernels.tools.docgen.import_graph import PACKAGE

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Reference:
    """One definition: `text` is what names it, such as ``selection.select:choose``; `path` begins at the repository."""

    text: str
    module: str
    name: str
    path: str
    line: int
    node: Definition = field(compare=False, repr=False)

    @property
    def link(self) -> str:
        """A Markdown link to the file, without the line, which changes too often."""
        return f"[`{self.path.removeprefix('jitkernels/')}:{self.name}`]({self.path})"


def resolved(text: str) -> Reference:
    """The definition that ``module:name`` names, both without ``jitkernels.``.

    Raises UnknownNameError where the module does not exist or does not define the name itself.
    """
    module, _, name = text.partition(":")
    path = file_of(module)
    if path is None:
        raise UnknownNameError(f"{text}: expected a module of jitkernels, got {module!r}")
    node: ast.AST = _tree(path)
    for part in name.split("."):
        found = next((one for one in _definitions(node) if part in _names(one)), None)
        if found is None:
            raise UnknownNameError(f"{text}: expected a name that {path.name} defines, got {part!r}")
        node = found
    assert isinstance(node, Definition), "found among definitions"
    relative = path.relative_to(PACKAGE.parent).as_posix()
    return Reference(text, module, name, relative, node.lineno, node)


def uses(caller: Reference, callee: Reference) -> bool:
    """Whether the text of one definition names another: its function, its class, or a method of that name.

    Functions are looked up through the imports of the caller's module; a name that nothing around it defines is one of
    the flat namespace in which a package's functions over words are linked. A method of ``self`` is one of the caller's
    class or its bases; a method of another object counts where the caller's module imports from the method's.
    """
    owner, _, last = callee.name.rpartition(".")
    imports, own = _imports(caller.module), _globals(caller.module)
    nodes = [one for part in _bodies(caller.node) for one in ast.walk(part)]
    local = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    is_beside = caller.module.rpartition(".")[0] == callee.module.rpartition(".")[0]
    for node in nodes:
        if isinstance(node, ast.Name) and node.id not in local:
            is_linked = is_beside and node.id not in own
            target = imports.get(node.id, f"{callee.module if is_linked else caller.module}:{node.id}")
            if target == callee.text or (owner and last == "__init__" and target == f"{callee.module}:{owner}"):
                return True
        elif isinstance(node, ast.Attribute):
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            if f"{imports.get(base, '')}:{node.attr}" == callee.text:
                return True
            if owner and node.attr == last and _may_be_of(base, caller, callee):
                return True
    return False


def _may_be_of(base: str, caller: Reference, callee: Reference) -> bool:
    """Whether an attribute of what is called `base` in the caller may be one of the callee's class."""
    owner = callee.name.rpartition(".")[0]
    if base == "self":
        return f"{callee.module}:{owner}" in _classes(caller.module, caller.name.split(".")[0])
    imports = _imports(caller.module)
    if ":" not in imports.get(base, ":"):  # a module
        return False
    return caller.module == callee.module or any(one.split(":")[0] == callee.module for one in imports.values())


@cache
def _classes(module: str, name: str) -> frozenset[str]:
    """A class and its bases in the package, as references."""
    text = f"{module}:{name}"
    try:
        node = resolved(text).node
    except UnknownNameError:
        return frozenset()
    found = {text}
    for base in node.bases if isinstance(node, ast.ClassDef) else ():
        target = _imports(module).get(base.id, f"{module}:{base.id}") if isinstance(base, ast.Name) else ""
        if ":" in target:
            found |= _classes(*target.split(":", 1))
    return frozenset(found)


def _bodies(node: Definition) -> Sequence[ast.AST]:
    """What a definition runs: the types of its arguments and of its result are no use of these."""
    return node.body if isinstance(node, ast.FunctionDef) else [node]


def file_of(module: str) -> Path | None:
    """The file of a module; None where there is none."""
    path = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    files = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in files if file.is_file()), None)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """What the body of a module, class or function defines, inside of ``if`` and ``with`` too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield child
        elif isinstance(child, ast.If | ast.With | ast.Try):
            yield from _definitions(child)


def _names(node: Definition) -> Sequence[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


@cache
def _globals(module: str) -> frozenset[str]:
    path = file_of(module)
    assert path is not None, "resolved"
    return frozenset(name for node in _definitions(_tree(path)) for name in _names(node))


@cache
def _imports(module: str) -> dict[str, str]:
    """What each imported name of a module means: a module, or a definition ``module:name``; imports inside count."""
    path = file_of(module)
    assert path is not None, "resolved"
    found = {}
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jitkernels":
            base = str(node.module).removeprefix("jitkernels").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                is_module = file_of(inner) is not None
                found[alias.asname or alias.name] = inner if is_module else f"{base}:{alias.name}"
    return found
