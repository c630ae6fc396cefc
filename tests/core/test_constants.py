"""One name of a constant has one value: who read it in one module may rely on it in the next.

A table says which names still stand for several values, and in how many modules. It may only shrink.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2] / "jitkernels"
ALLOWED: dict[str, int] = {}
"""Names that still stand for different numbers, texts or sets, and in how many modules."""


def value_of(expression: ast.expr, known: dict[str, Any]) -> Any:
    """The number, text, or set of these that a literal, or arithmetic with constants of the module, stands for.

    Raises ValueError for anything else.
    """
    match expression:
        case ast.Constant(value=int() | float() | str() as value) if type(value) is not bool:
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Set(elts=elements):
            return frozenset(value_of(one, known) for one in elements)
        case ast.Call(func=ast.Name(id="frozenset" | "set"), args=[ast.Set() | ast.Tuple() | ast.List() as collected]):
            return frozenset(value_of(one, known) for one in collected.elts)
        case ast.BinOp(left=left, right=right):
            operands: ast.expr = ast.BinOp(_literal(left, known), expression.op, _literal(right, known))
        case ast.UnaryOp(operand=operand):
            operands = ast.UnaryOp(expression.op, _literal(operand, known))
        case _:
            raise ValueError(ast.unparse(expression))
    try:
        return eval(ast.unparse(operands), {"__builtins__": {}})  # literals alone
    except (ArithmeticError, TypeError) as error:
        raise ValueError(ast.unparse(expression)) from error


def _literal(expression: ast.expr, known: dict[str, Any]) -> ast.Constant:
    value = value_of(expression, known)
    if isinstance(value, frozenset):
        raise ValueError(ast.unparse(expression))
    return ast.Constant(value)


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The names of constants that a module assigns at top level, and what it assigns to each."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pass
            case _:
                continue
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for one, expression in pairs:
            if isinstance(one, ast.Name) and one.id.isupper() and len(one.id) > 1:
                yield one.id, expression


def constants_of(text: str) -> dict[str, Any]:
    """The constants of a module that are numbers, texts or sets."""
    known: dict[str, Any] = {}
    for name, expression in assigned(ast.parse(text)):
        try:
            known[name] = value_of(expression, known)
        except ValueError:
            continue
    return known


def named_twice() -> dict[str, dict[str, Any]]:
    """Names that stand for different values, with the value in each module."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for path in sorted(ROOT.rglob("*.py")):
        for name, value in constants_of(path.read_text(encoding="utf-8")).items():
            found[name][path.relative_to(ROOT).as_posix()] = value
    return {name: at for name, at in found.items() if len({(type(one), one) for one in at.values()}) > 1}


def test_no_two_constants_of_one_name_have_different_values() -> None:
    found = named_twice()
    now = {name: len(found.get(name, {})) for name in ALLOWED}
    print("lower ALLOWED:", {name: count for name, count in now.items() if count < ALLOWED[name]})  # noqa: T201  # for whoever lowers the table
    grown = {name: at for name, at in found.items() if len(at) > ALLOWED.get(name, 0)}
    assert not grown, f"say in the name what each is, and in which unit: {grown}"


def test_different_values_are_caught() -> None:
    assert constants_of("A_B, CD = 1, 'x'\nEF: int = A_B << 4\nGH = -EF\nIJ = frozenset({CD})\nkl = 3\nMN = f()") == {
        "A_B": 1,
        "CD": "x",
        "EF": 16,
        "GH": -16,
        "IJ": frozenset({"x"}),
    }
    assert constants_of("AB = 1 / 0\nCD = True\nEF = (1, 2)") == {}


if __name__ == "__main__":
    print({name: len(at) for name, at in sorted(named_twice().items())})  # noqa: T201  # a command
