"""Write the optimized LLVM IR of every kernel and benchmark program of a checkout, or compare two such folders.

    python bench/compiled_text.py write FOLDER            # of the package that PYTHONPATH or the environment names
    python bench/compiled_text.py compare BEFORE NOW      # what differs, and what only one of them has

A refactoring that changes no machine code leaves all files equal: the names of values, functions and types are
replaced by numbers in the order in which they occur. Objects that a source-level cache would share are built again.
"""

import difflib
import importlib
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

IDENTIFIER = re.compile(r'[%@$](?:"[^"]*"|[-\w.$]+)|![\w.]+|#\d+|c"[^"]*"')
ENTRY = re.compile(r"^define [^@]*@jk_(?:call|launcher|vectorcall)_", re.MULTILINE)
"""What checks arguments and calls a kernel or program, in a module of its own."""
GENERATED = ("gen", "mix")
captured: list[str] = []


def normalised(module: str) -> str:
    """Replace identifiers by numbers in order of occurrence; drop comments, metadata, and strings of constants."""
    kept = [line.split(" ; ")[0].rstrip() for line in module.splitlines()]
    kept = [
        line for line in kept if line and line[0] not in ";!" and not line.startswith(("source_filename", "attributes"))
    ]
    kept = [re.sub(r"^([-\w.$]+):", r"%\1:", line) for line in kept]  # labels of blocks
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith(("@llvm.", "!", "#", "c")):
            return text if text.startswith("@") else text[0]
        return numbers.setdefault(text, f"{text[0]}{len(numbers)}")

    return "\n".join(IDENTIFIER.sub(number, line) for line in kept) + "\n"


def capture_objects() -> None:
    """Have LLVM's code generator keep the text of each module that it is given."""
    import llvmlite.binding as llvm

    emit = llvm.TargetMachine.emit_object

    def emit_and_keep(self: Any, module: Any) -> bytes:
        captured.append(str(module))
        return bytes(emit(self, module))

    llvm.TargetMachine.emit_object = emit_and_keep


def kernels(jk: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    rows = [getattr(jk, name) for name in sorted(dir(jk)) if name.endswith("Attr")]
    for row in rows:
        try:
            cases = list(row.sweep())
        except NotImplementedError:  # a base of rows
            continue
        for case, name in itertools.product(cases, GENERATED):
            if "ci" in case.tags:
                yield f"{row.__name__} {case.name} {name}", lambda a=case.attr, n=name: build(jk, a, n)  # type: ignore[misc]


def build(jk: Any, attr: Any, name: str) -> None:
    with jk.use(implementation=name):
        jk.get_default_best(attr)


def programs(jk: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    package = "benchmarks" if importlib.util.find_spec("jitkernels.benchmarks") else "benchmark"  # as it was called

    def module(name: str) -> Any:
        return importlib.import_module(f"jitkernels.{package}.{name}")

    for table in (module("whole_programs").PROGRAMS, module("scalar_programs").PROGRAMS):
        for function, arguments in table.items():
            yield f"program {function.__name__}", lambda f=function, a=arguments: jk.jit(f)(*a())  # type: ignore[misc]
    for name, program in module("programs").all_programs().items():
        for dtype, level in itertools.product(("float32", "float64"), (0, 3)):
            yield (
                f"expression {name} {dtype} level {level}",
                lambda p=program, d=dtype, o=level: jk.jit(p.function, opt_level=o)(*p.arguments(1000, d)),  # type: ignore[misc]
            )


def write(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"JITKERNELS_CACHE_DIR": cache, "JITKERNELS_TUNE": "off", "JITKERNELS_NUM_THREADS": "2"}
        capture_objects()
        import jitkernels as jk

        folder.mkdir(parents=True, exist_ok=True)
        for name, compile_it in itertools.chain(kernels(jk), programs(jk)):
            captured.clear()
            error = ""
            try:
                compile_it()
            except Exception as raised:  # noqa: BLE001  # a line of the comparison, whatever it is
                error = f"{type(raised).__name__}\n"
            entries = [bool(ENTRY.search(module)) for module in captured]
            for suffix, is_entry in (("", False), ("_entry", True)):
                texts = [normalised(text) for text, own in zip(captured, entries, strict=True) if own is is_entry]
                path = folder / (re.sub(r"[^-\w]+", "_", name) + suffix)
                path.write_text("".join(texts) + error, encoding="utf-8")


def compare(before: Path, now: Path) -> int:
    old, new = (
        {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir() if path.stat().st_size}
        for folder in (before, now)
    )
    differ = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    for name in differ:
        a, b = old[name].splitlines(), new[name].splitlines()
        changed = sum(line[0] in "+-" for line in difflib.unified_diff(a, b, n=0)) if len(a) + len(b) < 20_000 else -1
        print(f"{name}: {len(a)} lines before, {len(b)} now, {changed} differ")
    assert any(old.values()), "nothing was captured"
    print("only before:", ", ".join(sorted(old.keys() - new.keys())) or "none")
    print("only now:", ", ".join(sorted(new.keys() - old.keys())) or "none")
    print(f"{len(old.keys() & new.keys()) - len(differ)} equal, {len(differ)} differ")
    return bool(differ)


if __name__ == "__main__":
    command, *folders = sys.argv[1:]
    commands: dict[str, Callable[..., Any]] = {"write": write, "compare": compare}
    sys.exit(commands[command](*map(Path, folders)))
