"""Generate Python modules of C prototypes from the ``prototypes.h`` of each library.

cffi parses C declarations in 30 ms, which would delay every process that calls a kernel. Therefore
``python -m jitkernels.tools.c_prototypes`` parses them once and writes cffi's out-of-line form, which loads in half a
millisecond. A test compares the modules with the headers.
"""

import contextlib
import io
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MORE = Path(__file__).parent.parent / "more"
PROTOTYPES_STEM = "prototypes"


def headers() -> list[Path]:
    """Return the path of the header of each library."""
    return sorted(MORE.glob(f"*/{PROTOTYPES_STEM}.h"))


def declarations(header: Path) -> str:
    """Return the declarations of a header without comments."""
    return re.sub(r"//[^\n]*", "", header.read_text(encoding="utf-8"))


def module_text(header: Path) -> str:
    """Return the Python module of a header: the C types of each function for code generation, and the ``ffi``."""
    from cffi import FFI

    library, text = header.parent.name, declarations(header)
    ffi = FFI()
    ffi.cdef(text)
    types: Sequence[str] = sorted(re.findall(r"\b(\w+)\(", text))
    functions = {name: _signature(ffi, text, name) for name in types}
    lines = [
        f'"""Generated from prototypes.h of {library} by ``python -m jitkernels.tools.c_prototypes``; do not edit."""',
        "",
        "from typing import Any",
        "",
        "FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {",
        *(f"    {name!r}: {signature!r}," for name, signature in functions.items()),
        "}",
        "",
        "",
        "def declared() -> Any:",
        '    """The ``ffi`` with all declarations, which loads no library."""',
        "    import _cffi_backend",
        "",
        *(f"    {line}" for line in _out_of_line(text, f"jitkernels.more.{library}.{PROTOTYPES_STEM}")),
    ]
    return "\n".join(lines) + "\n"


def _out_of_line(text: str, name: str) -> list[str]:
    """Return cffi's out-of-line expression for declarations, as a ``return`` statement."""
    from cffi import FFI

    ffi = FFI()
    ffi.cdef(text)
    ffi.set_source(name, None)
    with tempfile.TemporaryDirectory(prefix="jitkernels-") as folder:
        path = Path(folder, "module.py")
        with contextlib.redirect_stdout(io.StringIO()):  # cffi prints a line for each file that it writes
            ffi.emit_python_code(str(path))
        generated = path.read_text(encoding="utf-8")
    _, _, expression = generated.partition("ffi = ")
    return f"return {expression}".rstrip().splitlines()


def _signature(ffi: Any, text: str, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the result type and the argument types of a declared function, as C types of `jitkernels.core.dtypes`."""
    function = ffi.typeof(_pointer_to(text, name))
    return argument_type(ffi, function.result), tuple(argument_type(ffi, ctype) for ctype in function.args)


def _pointer_to(text: str, name: str) -> str:
    """Return the ctype of a pointer to a declared function."""
    match = re.search(rf"([\w\s]+[\s*]+)\b{name}\((.*?)\);", text, re.DOTALL)
    assert match, f"{name} is declared"
    return f"{match[1].strip()}(*)({match[2]})"


def argument_type(ffi: Any, kind: Any) -> str:
    """Return the type in which generated code passes a value of a C type.

    Integers narrower than ``int`` are promoted to it, as in C. Pointers to anything but floats are ``void*``: byte
    workspaces are passed as integers.
    """
    if kind.kind == "void":
        return "void"
    if kind.kind == "pointer":
        return f"{kind.item.cname}*" if kind.item.cname in ("float", "double") else "void*"
    if kind.cname in ("float", "double"):
        return str(kind.cname)
    return "int64" if ffi.sizeof(kind) == 8 else "int32"


def main() -> None:
    """Write the generated module beside each header."""
    for header in headers():
        header.with_suffix(".py").write_text(module_text(header), encoding="utf-8")


if __name__ == "__main__":
    main()
