"""Aliases of Python builtins in a function, as far as its source or its globals determine them."""

import ast
import builtins
import types
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jitkernels.compiler.capture.rewrite.comprehensions import FOLDS

Aliases = tuple[tuple[str, str], ...]
"""Dotted names, each with the builtin name of the object that it refers to."""


def aliases_of(chains: Iterable[tuple[str, ...]], values: Mapping[str, Any]) -> Aliases:
    """Dotted names that refer to functions of `FOLDS`, given the values of their first names."""
    objects = {".".join(chain): value_of(chain, values) for chain in chains}
    return tuple(
        (name, fold)
        for name, value in objects.items()
        for fold in FOLDS
        if value is getattr(builtins, fold) and fold != name
    )


def value_of(chain: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    """The current object of a dotted name through modules and namespaces."""
    first, *rest = chain
    value = values.get(first)
    for name in rest:
        is_plain = isinstance(value, types.ModuleType | types.SimpleNamespace)
        value = vars(value).get(name) if is_plain else None
    return value


def local_aliases(tree: ast.FunctionDef, known: Mapping[str, str]) -> dict[str, str]:
    """Local variables that are assigned once, to a function of `FOLDS`."""
    stores: Counter[str] = Counter({node.arg: 1 for node in ast.walk(tree) if isinstance(node, ast.arg)})
    values: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                stores[name] += 1
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Attribute() as value):
                values[name] = ast.unparse(value)
    aliases: dict[str, str] = {}
    for name in values:
        source, passed = name, {name}
        while stores[source] == 1 and source in values and values[source] not in passed:
            source = values[source]
            passed.add(source)
        builtin_name = known.get(source, source)
        if builtin_name in FOLDS and not stores[source]:
            aliases[name] = builtin_name
    return aliases
