"""Identity of range kernels: equal kernels have equal text, in every process."""

import ast
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import python

from jitkernels.codegen import kernel_archive
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import (
    WRITERS,
    WRITTEN_OF,
    IRFunction,
    Table,
    inlined,
    instruction,
    symbol_of,
    written_by,
)
from jitkernels.core import source_hash
from jitkernels.errors import BuildError
from jitkernels.microkernels.gemm.microkernel import Tile
from jitkernels.microkernels.gemm.packing import copy_panel, transpose_panel

HEAD = "import numpy as np\nfrom jitkernels.codegen.source_protocol import inlined, instruction, offset\n"


def nest_of(body: Any, name: str = "identity") -> RangeKernel:
    return RangeKernel(name, ("float64*", "int64"), body, extent=1)


def made(folder: Path, text: str, **scope: Any) -> Any:
    """The function `body` of a module of its own, whose text is in a file."""
    folder.mkdir(exist_ok=True)
    file = folder / f"made_{len([*folder.iterdir()])}.py"
    file.write_text(HEAD + text)
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return scope["body"]


def one(statement: str, before: str = "", arguments: str = "p, n, begin, end") -> str:
    """The text of a module whose body is a statement."""
    return f"{before}\ndef body({arguments}):\n    {statement}\n"


def calling(value: str, arguments: str = "a, b, c", mark: str = "@inlined()") -> str:
    """The text of a module whose body calls a function that gives a value."""
    return one("p[0] = called(p[0], 2.0, 3.0)", f"{mark}\ndef called({arguments}):\n    return {value}\n")


FUSED, ROOT = "a * b + c", "p[0] = np.sqrt(p[1])"
PAIRS: dict[str, tuple[str, str]] = {
    "zeros": (one("p[0] = 0.0"), one("p[0] = -0.0")),
    "zeros around": (one("p[0] = Z", "Z = 0.0"), one("p[0] = Z", "Z = -0.0")),
    "types": (one("p[0] = p[0] / Z", "Z = 1"), one("p[0] = p[0] / Z", "Z = True")),
    "constants": (one("p[0] = 1"), one("p[0] = 1.0")),
    "NumPy's types": (one("p[0] = K(p[1])", "K = np.float32"), one("p[0] = K(p[1])", "K = np.float64")),
    "names of arguments": (one("p[0] = n - end"), one("p[0] = n - end", "", "p, n, end, begin")),
    "calls": (calling("a * b + c"), calling("a * c + b")),
    "fused": (calling(FUSED), calling(FUSED, mark='@instruction("fma")\n@inlined()')),
    "flags": (calling(FUSED), calling(FUSED, mark="@inlined('contract')")),
    "other flags": (calling(FUSED, mark="@inlined('nsz')"), calling(FUSED, mark="@inlined('arcp')")),
    "builtins": (one("p[0] = max(n, 1)"), one("p[0] = max(n, 1)", "@inlined()\ndef max(a, b):\n    return a\n")),
    "NumPy or a number": (one(ROOT), one(ROOT, "np = 3.0")),
    "functions of NumPy": (one(ROOT), one("p[0] = np.floor(p[1])")),
    "defaults": (calling(FUSED), calling(FUSED, "a, b, c=1")),
    "all that come": (calling("a * 1", "a"), calling("a * 1", "a, *b")),
    "functions inside": (one("p[0] = (lambda x: x + 1)(n)"), one("p[0] = (lambda x: x + 2)(n)")),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_different_texts_have_different_keys(tmp_path: Path, kind: str) -> None:
    nests = [nest_of(made(tmp_path, text)) for text in PAIRS[kind]]
    symbols = set()
    for number, nest in enumerate(nests):
        try:
            symbols.add(symbol_of(nest))
        except BuildError:
            symbols.add(f"none, {number}")
    assert len(symbols) == 2


def test_keys_of_tables_differ_however_numbers_are_written() -> None:
    def using(table: Table) -> Callable[..., None]:
        def body(p: Any, n: int, begin: int, end: int) -> None:
            (first,) = table[n]
            p[0] = first

        return body

    kinds = (np.float32, np.float64)
    tables = [Table(tuple((kind(value),) for value in (0.5, 0.25))) for kind in kinds]
    usual = [symbol_of(nest_of(using(table))) for table in tables]
    texts = [nest_of(using(table)).text for table in tables]
    with np.printoptions(legacy="1.25"):
        assert [symbol_of(nest_of(using(table))) for table in tables] == usual
        assert [nest_of(using(table)).text for table in tables] == texts
    assert len({*usual}) == len({*texts}) == 2


def test_shared_text_is_not_part_of_the_identity(tmp_path: Path) -> None:
    """Modules of equal text have equal code; other names in one of them change nothing."""
    text = calling(FUSED)
    first, other = made(tmp_path / "one", text), made(tmp_path / "other", f"\n\n\nunused = 1\n{text}")
    assert symbol_of(nest_of(first)) == symbol_of(nest_of(other))


def test_function_marks_change_the_text() -> None:
    def three(a: Any, b: Any, c: Any) -> Any:
        return a * b + c

    plain = inlined()(three)
    text = nest_of(plain).text
    instruction("fma")(plain)
    assert nest_of(plain).text != text


def test_globals_changed_before_code_generation(tmp_path: Path) -> None:
    """The key describes the old value: code for another one is not stored under it."""
    body = made(tmp_path, "VALUE = 1.0\ndef body(p, n, begin, end):\n    p[0] = VALUE\n")
    nest = nest_of(body)
    before = symbol_of(nest)
    body.__globals__["VALUE"] = 2.0
    with pytest.raises(BuildError, match="has changed since"):
        nest.object_code(before)
    assert symbol_of(nest_of(body)) != before
    assert nest_of(body).object_code("jk_other")


def test_files_changed_after_import(tmp_path: Path) -> None:
    """Text and key have to come from the same version of the file."""
    text = "def body(p, n, begin, end):\n    p[0] = {}\n"
    body = made(tmp_path, text.format("1.0"))
    (file,) = tmp_path.iterdir()
    file.write_text(HEAD + text.format("2.0"))
    with pytest.raises(BuildError, match="has changed since Python loaded it"):
        nest_of(body).object_code("jk_body")
    file.write_text(f"{HEAD}# of other words\n{text.format('1.0')}".replace("# of other words\n", ""))
    os.utime(file)
    assert nest_of(body).object_code("jk_body")


SYMBOLS = """
import json, sys
from jitkernels.tools import testing
from jitkernels.codegen.source_protocol import symbol_of
from jitkernels.attrs.schema.registry import all_schemas, implementation, implementations
if {traced}:
    sys.settrace(lambda *_: None)
    if hasattr(sys, "monitoring"):
        sys.monitoring.use_tool_id(3, "sees every line")
        sys.monitoring.register_callback(3, sys.monitoring.events.LINE, lambda *_: None)
        sys.monitoring.set_events(3, sys.monitoring.events.LINE)
found = {{}}
for row in all_schemas():
    attr = testing.middles(row)[0]
    for name in implementations(row):
        one = implementation(row, name)
        if name in ("gen", "mix") and one.reason_against(attr) is None:
            for variant in one.variants(attr)[:2]:
                source = one.source(attr, variant)
                assert getattr(source, "identity", True), "its text is made before an archive can be searched"
                found[f"{{attr}} {{name}} {{variant}}"] = symbol_of(source)
print(json.dumps(found))
"""


def test_keys_are_equal_in_all_processes() -> None:
    """Whatever the order of sets, the optimization level of Python, and an active trace function."""
    found = [
        json.loads(python(SYMBOLS.format(traced=bool(level)), PYTHONHASHSEED=str(level), PYTHONOPTIMIZE=str(level)))
        for level in (0, 2)
    ]
    assert len(found[0]) > 50
    assert found[0] == found[1]
    assert sys.flags.optimize == 0


def test_text_generators_import_only_keyed_modules() -> None:
    """Their imports are in the key: other generators, modules of every key, or modules listed beside them."""
    known = {
        f"jitkernels.{place.removesuffix('.py').replace('/', '.')}" for place in (*WRITERS, *kernel_archive.COMPILER)
    }
    known |= {f"jitkernels.{name.replace('/', '.')}" for name in (*WRITTEN_OF, "core.frozen_dataclass")}
    for place in WRITERS:
        tree = ast.parse((source_hash.PACKAGE / place).read_text())
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        own = [node for node in froms if str(node.module).partition(".")[0] == "jitkernels"]
        used = [f"{node.module}.{alias.name}" for node in own for alias in node.names]
        assert [name for name in used if not any(f"{name}.".startswith(f"{k}.") for k in known)] == [], place


def test_lazy_texts() -> None:
    """Lazy text is identified by its writer and that writer's argument, is right when it is read, and shares no key."""
    tiles = [Tile("one", "float32", 8, rows, 2, beta, a_by_column=False) for rows in (2, 4) for beta in (0.0, -0.0)]
    panels = [(copy_panel, 8), (copy_panel, 16), (transpose_panel, 8)]
    made = [written_by(Tile.text, tile) for tile in tiles]
    made += [written_by(writer, "one", "float32", 8, width) for writer, width in panels]

    def using(text: Any) -> Any:
        function: Any = IRFunction("one", "void", ("float32*",), text)

        def body(p: Any, n: int, begin: int, end: int) -> None:
            function(p)

        return body

    assert len({symbol_of(nest_of(using(one))) for one in made}) == len(made)
    assert symbol_of(nest_of(using(made[0]))) == symbol_of(nest_of(using(written_by(Tile.text, tiles[0]))))
    function = IRFunction("one", "void", ("float32*",), made[0])
    assert function.text == tiles[0].text()
    texts = [f"; of {number}\n" for number in range(2)]
    theirs = [nest_of(using(written_by(lambda text: text, text))) for text in texts]  # of no known module
    assert theirs[0].identity is None
    assert len({symbol_of(one) for one in theirs}) == 2
