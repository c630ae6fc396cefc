"""C sources built with the C compiler of this machine, for kernels written with SIMD intrinsics.

cffi writes the C of an extension module around the source, which checks it against its declaration; the
compiler is then started here and not through setuptools, so that its output can be captured and nothing
but a compiler and the headers of Python is needed. The module is kept in the cache like any other object.
"""

import functools
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitkernels import machine
from jitkernels.errors import BuildError
from jitkernels.native import cache, codegen
from jitkernels.native.source import External

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-fno-math-errno", "-Werror=incompatible-pointer-types")
POINTERS = {"float*": "float *", "double*": "double *", "int64*": "int64_t *", "int64": "int64_t "}

_modules: list[Any] = []


@functools.cache
def compiler() -> tuple[tuple[str, ...], str]:
    """The command of the C compiler and its path, or an empty command and the reason why there is none.

    ``$CC`` if set (it may hold options), else the first of `COMPILERS` in ``$PATH``.
    """
    asked = os.environ.get("CC", "").strip()
    try:
        words = shlex.split(asked)
    except ValueError as error:
        return (), f"no C compiler: CC={asked!r} cannot be read: {error}"
    found = [path for path in map(shutil.which, words[:1] or COMPILERS) if path]
    if not found:
        wanted = f"CC={asked} is not" if asked else "neither cc nor gcc nor clang is"
        return (), f"no C compiler: {wanted} in PATH"
    if importlib.util.find_spec("cffi") is None:
        return (), "cffi is not installed"
    if not any(Path(folder, "Python.h").is_file() for folder in _include_folders()):
        return (), f"no Python headers: {_include_folders()[0]}/Python.h does not exist"
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
    command, _ = compiler()
    files = [path for path in map(shutil.which, command) if path]
    stats = [(path, str(Path(path).resolve()), Path(path).stat()) for path in files]
    return f"{shlex.join(command)} " + " ".join(
        f"({path}: {true}, {status.st_size} bytes, {status.st_mtime_ns})" for path, true, status in stats
    )


def _include_folders() -> list[str]:
    return list(dict.fromkeys(sysconfig.get_path(name) for name in ("include", "platinclude")))


@dataclass(frozen=True)
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

    @property
    def declaration(self) -> str:
        """The prototype by which cffi checks the code."""
        return f"int64_t {self.function}({', '.join(POINTERS[argument].strip() for argument in self.arguments)});"

    @functools.cached_property
    def text(self) -> str:
        """Everything that decides the machine code: compiler, options, declaration, code."""
        options = shlex.join([*OPTIONS, *self.flags])
        return f"// {_identity()}\n// {options}\n// {self.declaration}\n{self.code}"

    def load(self, symbol: str) -> int:
        """Address of the function in this process, built unless the cache has it. Raises BuildError."""
        content, path = cache.fetch(self.text, ".so", lambda: self._shared_object(symbol))
        if path is not None:
            return self._address(symbol, path)
        with tempfile.TemporaryDirectory(prefix="jitkernels-") as folder:
            file = Path(folder, f"{symbol}.so")
            file.write_bytes(content)
            return self._address(symbol, file)

    def _address(self, symbol: str, path: Path) -> int:
        loader = importlib.machinery.ExtensionFileLoader(symbol, str(path))
        spec = importlib.util.spec_from_loader(symbol, loader)
        try:
            module: Any = importlib.util.module_from_spec(spec) if spec else None
            loader.exec_module(module)
            address = int(module.ffi.cast("uintptr_t", module.ffi.addressof(module.lib, self.function)))
        except (ImportError, AttributeError) as error:
            raise BuildError(f"cannot load {self.name} ({path}): {error}") from error
        _modules.append(module)
        return address

    def _shared_object(self, symbol: str) -> bytes:
        command, reason = compiler()
        if not command:
            raise BuildError(f"cannot build {self.name}: {reason}")
        import cffi

        builder = cffi.FFI()
        builder.cdef(self.declaration)
        builder.set_source(symbol, self.code, compiler_verbose=0)  # else it prints
        try:
            with tempfile.TemporaryDirectory(prefix="jitkernels-") as folder:
                file, built = Path(folder, "module.c"), Path(folder, "module.so")
                builder.emit_c_code(str(file))
                includes = [f"-I{place}" for place in _include_folders()]
                _run(
                    [
                        *command,
                        *OPTIONS,
                        *self.flags,
                        *includes,
                        "-save-temps=obj",
                        str(file),
                        "-o",
                        str(built),
                    ]
                )
                assembly = "".join(path.read_text() for path in sorted(Path(folder).glob("*.s")))
                code = built.read_bytes()
                codegen.keep_intermediates(symbol, {"c": self.text, "s": assembly}, code)
                return code
        except OSError as error:
            raise BuildError(f"cannot build {self.name}: {error}") from error


def _run(command: Sequence[str]) -> None:
    """Start the compiler with its output captured; what it said becomes the error if it fails."""
    import subprocess

    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        raise BuildError(f"{shlex.join(command)} failed ({done.returncode}):\n{done.stdout}{done.stderr}")
