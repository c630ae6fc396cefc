"""C sources, for kernels with SIMD intrinsics, built with the C compiler of this machine.

Plain C without Python headers: a compiler is all that is needed. The source's function is called by an entry with the
declared arguments, the only visible symbol of the library; so the compiler checks the code against its declaration.
The compiler's output is captured.
"""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from jitkernels.codegen.dump import dump_intermediates, dumps_intermediates
from jitkernels.codegen.source_protocol import External
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import BuildError

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = (
    "-O3", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-math-errno",
    "-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-Werror=implicit-function-declaration",
)  # fmt: skip
LIBRARIES = ("-lm",)
ENTRY_NAME = "jk_entry"
"""The name of the entry in the text of a source, whose symbol is a hash of that text."""


@functools.cache
def compiler() -> tuple[tuple[str, ...], str]:
    """Return the C compiler's command and path, or an empty command and the reason why there is none.

    ``$CC`` if set (it may hold options), else the first of `COMPILERS` in ``$PATH``.
    """
    import shlex
    import shutil

    requested = os.environ.get("CC", "").strip()
    try:
        words = shlex.split(requested)
    except ValueError as error:
        return (), f"no C compiler: CC={requested!r} cannot be read: {error}"
    results = [path for path in map(shutil.which, words[:1] or COMPILERS) if path]
    if not results:
        missing = f"CC={requested} is not" if requested else "neither cc nor gcc nor clang is"
        return (), f"no C compiler: {missing} in PATH"
    return (results[0], *words[1:]), results[0]


def reason_against_avx2() -> str | None:
    """Why C with AVX2 intrinsics cannot be built or run here, or None."""
    if not {"avx2", "fma"} <= cpu_target.cpu_features():
        return "needs AVX2 and FMA"
    command, reason = compiler()
    return None if command else reason


def simd_flags() -> tuple[str, ...]:
    """Compiler options for the vector features that may be used here, and no others of the CPU."""
    wide = {"avx512f": "-mavx512f", "avx512vl": "-mavx512vl", "avx512dq": "-mavx512dq", "avx512bw": "-mavx512bw"}
    flags = ["-mavx2", "-mfma"]
    if set(wide) <= cpu_target.cpu_features():
        flags += wide.values()
    return tuple(flags)


@functools.cache
def _identity() -> str:
    """The compiler's identity without running it: path, resolved path, size and modification time."""
    import shlex
    import shutil

    command, _ = compiler()
    files = [path for path in map(shutil.which, command) if path]
    stats = [(path, str(Path(path).resolve()), Path(path).stat()) for path in files]
    return f"{shlex.join(command)} " + " ".join(
        f"({path}: {true}, {status.st_size} bytes, {status.st_mtime_ns})" for path, true, status in stats
    )


@frozen_dataclass
class CSource:
    """The C function `function`, one of those that `code` defines, returning ``int64_t``.

    `arguments` are C types as in a schema's signature; `flags` are further options of the compiler.
    """

    name: str
    arguments: tuple[str, ...]
    function: str
    code: str
    flags: tuple[str, ...] = ()
    externals: tuple[External, ...] = ()
    suffix: ClassVar[str] = ".so"
    has_range: ClassVar[bool] = False

    @property
    def entry(self) -> str:
        """The C text of the visible function, whose call lets the compiler check the code."""
        names = [f"a{i}" for i in range(len(self.arguments))]
        kinds = [dtypes.c_type(argument) for argument in self.arguments]
        parameters = ", ".join(kind.declare(name) for kind, name in zip(kinds, names, strict=True))
        return (
            f'__attribute__((visibility("default"))) int64_t {ENTRY_NAME}({parameters}) {{\n'
            f"  return {self.function}({', '.join(names)});\n}}\n"
        )

    @property
    def prototype(self) -> str:
        """The C type of a pointer to the entry, with which `cffi_library.function_at` lets Python call it."""
        kinds = [dtypes.c_type(argument).declare("").replace("restrict", "").strip() for argument in self.arguments]
        return f"int64_t(*)({', '.join(kinds)})"

    @property
    def built_by(self) -> str:
        """The compiler.

        It is part of the cache key but of no symbol, as archives are used on machines without a compiler.
        """
        return _identity()

    @unlocked_cached_property
    def text(self) -> str:
        """Everything that determines the machine code: options, code, entry."""
        import shlex

        options = shlex.join([*OPTIONS, *self.flags, *LIBRARIES])
        return f"// {options}\n#include <stdint.h>\n{self.code}\n{self.entry}"

    def object_code(self, symbol: str) -> bytes:
        """Compile to a shared library with the entry as its only visible symbol."""
        import tempfile

        command, reason = compiler()
        if not command:
            raise BuildError(f"cannot build {self.name}: {reason}")
        defined = [f"-D{ENTRY_NAME}={symbol}"]
        try:
            with tempfile.TemporaryDirectory(prefix="jitkernels-") as folder:
                file, built = Path(folder, "module.c"), Path(folder, "module.so")
                file.write_text(self.text, encoding="utf-8")
                dump_options = ["-save-temps=obj"] if dumps_intermediates() else []
                paths = [str(file), "-o", str(built)]
                _run([*command, *OPTIONS, *self.flags, *defined, *dump_options, *paths, *LIBRARIES])
                assembly = "".join(path.read_text() for path in sorted(Path(folder).glob("*.s")))
                code = built.read_bytes()
                dump_intermediates(symbol, {"c": self.text, "s": assembly}, code)
                return code
        except OSError as error:
            raise BuildError(f"cannot build {self.name}: {error}") from error


def _run(command: Sequence[str]) -> None:
    """Run the compiler with its output captured, which becomes the error message if it fails."""
    import shlex
    import subprocess

    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"{shlex.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
