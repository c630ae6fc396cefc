"""C sources built with the C compiler of this machine, for kernels written with SIMD intrinsics.

Plain C and nothing of Python's: a compiler is all that is needed. The function that a source names is called
by one of known arguments and of the source's symbol, which is the only one that the library shows; that way
the compiler checks the code against its declaration. It is started with its output captured.
"""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from jitkernels import dtypes, machine
from jitkernels.errors import BuildError
from jitkernels.kept import kept_property
from jitkernels.native.intermediates import keep_intermediates, keeps_intermediates
from jitkernels.native.source import External
from jitkernels.records import record

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = (
    "-O3", "-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-math-errno",
    "-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-Werror=implicit-function-declaration",
)  # fmt: skip
LIBRARIES = ("-lm",)
ENTRY = "jk_entry"
"""What the entry is called in the text of a source, which cannot know its own symbol."""


@functools.cache
def compiler() -> tuple[tuple[str, ...], str]:
    """The command of the C compiler and its path, or an empty command and the reason why there is none.

    ``$CC`` if set (it may hold options), else the first of `COMPILERS` in ``$PATH``.
    """
    import shlex
    import shutil

    asked = os.environ.get("CC", "").strip()
    try:
        words = shlex.split(asked)
    except ValueError as error:
        return (), f"no C compiler: CC={asked!r} cannot be read: {error}"
    found = [path for path in map(shutil.which, words[:1] or COMPILERS) if path]
    if not found:
        wanted = f"CC={asked} is not" if asked else "neither cc nor gcc nor clang is"
        return (), f"no C compiler: {wanted} in PATH"
    return (found[0], *words[1:]), found[0]


def reason_against_avx2() -> str | None:
    """Why C with AVX2 intrinsics cannot be built or run here, or None."""
    if not {"avx2", "fma"} <= machine.cpu_features():
        return "needs AVX2 and FMA"
    command, reason = compiler()
    return None if command else reason


def simd_flags() -> tuple[str, ...]:
    """Compiler options for the vector features that may be used here; never what the CPU has besides."""
    wide = {
        "avx512f": "-mavx512f",
        "avx512vl": "-mavx512vl",
        "avx512dq": "-mavx512dq",
        "avx512bw": "-mavx512bw",
    }
    flags = ["-mavx2", "-mfma"]
    if set(wide) <= machine.cpu_features():
        flags += wide.values()
    return tuple(flags)


@functools.cache
def _identity() -> str:
    """What makes two compilers differ: path, true path, size and date, which takes no process to find out."""
    import shlex
    import shutil

    command, _ = compiler()
    files = [path for path in map(shutil.which, command) if path]
    stats = [(path, str(Path(path).resolve()), Path(path).stat()) for path in files]
    return f"{shlex.join(command)} " + " ".join(
        f"({path}: {true}, {status.st_size} bytes, {status.st_mtime_ns})" for path, true, status in stats
    )


@record
class CSource:
    """The C function `function`, one of those that `code` defines, returning ``int64_t``.

    `arguments` are C types as in a row's signature; `flags` are further options of the compiler.
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
        """The C of the visible function, by whose call the compiler checks the code."""
        names = [f"a{i}" for i in range(len(self.arguments))]
        kinds = [dtypes.c_type(argument) for argument in self.arguments]
        parameters = ", ".join(kind.declare(name) for kind, name in zip(kinds, names, strict=True))
        return (
            f'__attribute__((visibility("default"))) int64_t {ENTRY}({parameters}) {{\n'
            f"  return {self.function}({', '.join(names)});\n}}\n"
        )

    @property
    def built_by(self) -> str:
        """The compiler. It is part of the key in the cache, but of no name, as packs go where there is none."""
        return _identity()

    @kept_property
    def text(self) -> str:
        """Everything that decides what the machine code does: options, code, entry."""
        import shlex

        options = shlex.join([*OPTIONS, *self.flags, *LIBRARIES])
        return f"// {options}\n#include <stdint.h>\n{self.code}\n{self.entry}"

    def object_code(self, symbol: str) -> bytes:
        """A shared library that shows the entry and nothing else."""
        import tempfile

        command, reason = compiler()
        if not command:
            raise BuildError(f"cannot build {self.name}: {reason}")
        defined = [f"-D{ENTRY}={symbol}"]
        try:
            with tempfile.TemporaryDirectory(prefix="jitkernels-") as folder:
                file, built = Path(folder, "module.c"), Path(folder, "module.so")
                file.write_text(self.text, encoding="utf-8")
                kept = ["-save-temps=obj"] if keeps_intermediates() else []
                places = [str(file), "-o", str(built)]
                _run([*command, *OPTIONS, *self.flags, *defined, *kept, *places, *LIBRARIES])
                assembly = "".join(path.read_text() for path in sorted(Path(folder).glob("*.s")))
                code = built.read_bytes()
                keep_intermediates(symbol, {"c": self.text, "s": assembly}, code)
                return code
        except OSError as error:
            raise BuildError(f"cannot build {self.name}: {error}") from error


def _run(command: Sequence[str]) -> None:
    """Start the compiler with its output captured; what it said becomes the error if it fails."""
    import shlex
    import subprocess

    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"{shlex.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
