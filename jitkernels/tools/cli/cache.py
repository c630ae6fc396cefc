"""``jitkernels cache``: show, verify, archive and delete the built kernels and measurements on disk."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from jitkernels.attrs.fused import FusedAttr
from jitkernels.attrs.program import ProgramAttr
from jitkernels.attrs.schema.registry import all_schemas, op_schema
from jitkernels.codegen import object_cache
from jitkernels.core import cache_dirs, environment, hashing, source_hash
from jitkernels.core.array_archive import ArrayArchive, DamagedError
from jitkernels.errors import JitKernelsError
from jitkernels.onnx import model_cache
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records
from jitkernels.tools import warm_wheel
from jitkernels.tools.archive_builder import Packing
from jitkernels.tools.cli import output

BUILT = (".o", ".so")
OF_FUNCTIONS = (FusedAttr.kernel_type.name, ProgramAttr.kernel_type.name)


def show() -> int:
    """Print the folders of each environment and their contents."""
    result = summary()
    out = output.console()
    if result["place"] is None:
        out.print("no private cache folder is available: nothing is cached between processes")
        return 0
    out.print(escape(f"{result['place']}: {output.size(result['bytes'])}"))
    heads = ("built", "measured", "models", "size")
    table = output.table("environment", *heads, "", right=heads)
    for folder in _environments():
        built, measured = len(list(_built(folder))), len(list((folder / "tuning").glob("*.json")))
        models = len(list(_models(folder)))
        used = "in use" if folder in _in_use() else ""
        table.add_row(folder.name, str(built), str(measured), str(models), output.size(_bytes(folder)), used)
    if table.row_count:
        output.show(table)
    return 0


def summary() -> dict[str, Any]:
    """Return the cache's folder, file counts and sizes."""
    root = cache_dirs.cache_root()
    folders = list(_environments())
    return {
        "place": None if root is None else str(root),
        "built": sum(1 for folder in folders for _ in _built(folder)),
        "measured": sum(1 for folder in folders for _ in (folder / "tuning").glob("*.json")),
        "models": sum(1 for folder in folders for _ in _models(folder)),
        "bytes": sum(map(_bytes, folders)),
    }


def verify() -> int:
    """Print the name of every damaged file; return 1 if there are any."""
    checked, damaged = 0, []
    for folder in _environments():
        for path in _built(folder):
            checked += 1
            if object_cache.read(path) is None:
                damaged.append((path, "its checksum does not match"))
        for path in _models(folder):
            checked += 1
            try:
                ArrayArchive(path).arrays()
            except (OSError, DamagedError) as error:
                damaged.append((path, str(error)))
        for path in (folder / "tuning").glob("*.json"):
            checked += 1
            reason = _record_error(path)
            if reason:
                damaged.append((path, reason))
    out = output.console()
    for path, reason in damaged:
        out.print(escape(f"{path}: {reason}"), soft_wrap=True)
    out.print(f"{checked} files checked, {len(damaged)} damaged")
    return 1 if damaged else 0


def _record_error(path: Path) -> str | None:
    try:
        fields = dict(json.loads(path.read_bytes())["attr"])
        kernel = fields.pop("kernel")
        # The schemas of a compiled function and its loop nests exist only after that function was compiled.
        attr = None if kernel in OF_FUNCTIONS else op_schema(kernel)(**fields)
    except (OSError, ValueError, KeyError, TypeError, JitKernelsError) as error:
        return f"it is not a measurement: {error}"
    return None if records.read(path, attr, None) else f"it is not a complete measurement of {attr or kernel}"


def pack(path: Path, names: Sequence[str]) -> int:
    """Write an archive of the named kernels and of the kernels that named functions use, or of all kernels."""
    chosen = names or [attr_class.kernel_type.name.lower() for attr_class in all_schemas()]
    functions = [name for name in chosen if ":" in name]
    kernels = [op_schema(name).kernel_type.name.lower() for name in chosen if name not in functions]
    if functions and "" not in sys.path:
        sys.path.insert(0, "")  # a console script lacks the working directory, which `python -m` has
    with Packing() as packing:
        packing.add_launcher()
        for name in kernels:
            packing.add_schema(name)
        for name in functions:
            packing.add_function(name)
    size = packing.write(path)
    out = output.console()
    contents = f"{len(packing.objects)} objects and {len(packing.records)} measurements, {output.size(size)}"
    out.print(escape(f"{path}: {contents}"), soft_wrap=True)
    return 0


def wheel(folder: Path, packs: Sequence[Path]) -> int:
    """Write a wheel of archives and print its path."""
    path = warm_wheel.write(folder, packs)
    output.console().print(escape(f"{path}: {output.size(path.stat().st_size)}"), soft_wrap=True)
    return 0


def clear(*, only_others: bool) -> int:
    """Delete the folders of all environments, or of all but the present ones."""
    folders = [folder for folder in _environments() if not (only_others and folder in _in_use())]
    freed = sum(map(_bytes, folders))
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    source_hash.forget()
    out = output.console()
    remaining = [folder for folder in folders if folder.exists()]
    out.print(f"{len(folders) - len(remaining)} environments deleted, {output.size(freed)}")
    for folder in remaining:
        out.print(escape(f"{folder}: cannot be deleted"), soft_wrap=True)
    return 1 if remaining else 0


def _environments() -> Iterator[Path]:
    """Return the folders named after an environment's hash; no other file below the root belongs to the cache."""
    root = cache_dirs.cache_root()
    for folder in sorted(root.iterdir()) if root else []:
        if re.fullmatch(r"[0-9a-f]{16}", folder.name) and folder.is_dir() and not folder.is_symlink():
            yield folder


def _in_use() -> set[Path]:
    """Return the code folder and the measurement folder of this process."""
    root = cache_dirs.cache_root()
    tuning = cache_dirs.timings_directory(get_num_threads())
    objects = root and root / hashing.digest(environment.environment_of_code())[:16]
    return {folder for folder in (objects, tuning and tuning.parent) if folder}


def _built(folder: Path) -> Iterator[Path]:
    return (path for path in (folder / "objects").glob("*") if path.suffix in BUILT)


def _models(folder: Path) -> Iterator[Path]:
    return (folder / model_cache.MODELS).glob(f"*{model_cache.MODEL_SUFFIX}")


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
