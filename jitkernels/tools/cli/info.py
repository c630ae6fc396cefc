"""``jitkernels info``: the properties of this machine that decide which kernels can run and how fast."""

import importlib
import importlib.util
import itertools
import json as json_text
import pkgutil
import platform
from dataclasses import asdict
from typing import Any

from rich.markup import escape

import jitkernels
import jitkernels.more
from jitkernels.codegen import c_source
from jitkernels.core import cpu_target, environment, settings, versions
from jitkernels.dispatch.native import launcher
from jitkernels.runtime.threads import num_threads, team_size
from jitkernels.tools.cli import cache, output
from jitkernels.tools.docgen import coverage


def run(*, json: bool) -> int:
    """Print all properties, as a table or as one JSON object."""
    properties = collect()
    if json:
        print(json_text.dumps(properties, indent=1))
        return 0
    table = output.table("", "")
    table.show_header = False
    cache_summary = properties["cache"]
    folder = cache_summary["place"] or "none: no private folder is available"
    cache_text = f"{folder}, {output.size(cache_summary['bytes'])}"
    for name, value in {**properties, "cache": cache_text}.items():
        table.add_row(name.replace("_", " "), escape(_text(value)))
    output.show(table)
    return 0


def kernels(*, json: bool) -> int:
    """Print the coverage table: every implementation of every kernel by dtype, usable here or why not."""
    entries_of_all = list(coverage.covered())
    if json:
        print(json_text.dumps([asdict(entry) for entry in entries_of_all], indent=1))
        return 0
    table = output.table("kernel", "implementation", "dtypes usable here", "why not")
    for (kernel, name), entries in itertools.groupby(
        entries_of_all, lambda entry: (entry.kernel, entry.implementation)
    ):
        listed = list(entries)
        usable = " ".join(entry.dtype for entry in listed if entry.usable)
        reasons = dict.fromkeys(f"{entry.dtype}: {entry.why}" for entry in listed if entry.why)
        table.add_row(kernel, name, usable, escape("\n".join(reasons)))
    output.show(table)
    return 0


def collect() -> dict[str, Any]:
    """Return all properties as JSON-serializable values."""
    slow = launcher.reason_for_slow_path()
    library, origin = team_size.runtime()
    return {
        "jitkernels": jitkernels.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {name: versions.version(name) for name in environment.PACKAGES_OF_CODE if name != "jitkernels"},
        "cpu": cpu_target.cpu_name(),
        "features": sorted(cpu_target.cpu_features()),
        "vector_bytes": cpu_target.target().vector_bytes,
        "cores": cpu_target.cpu_count(),
        "threads": num_threads.get_num_threads(),
        "openmp": {"found": library is not None, "text": origin},
        "launcher": {"found": slow is None, "text": slow or "compiled"},
        "libraries": libraries(),
        "compiler": _llvm(),
        "c_compiler": _c_compiler(),
        "cache": cache.summary(),
        "settings": settings.present(),
    }


def libraries() -> dict[str, dict[str, Any]]:
    """Return each optional library with its path, or with the reason why it is unavailable."""
    answers = {}
    for package in pkgutil.iter_modules(jitkernels.more.__path__):
        name = f"jitkernels.more.{package.name}.library"
        if package.ispkg and importlib.util.find_spec(name) is not None:
            usable, text = importlib.import_module(name).status()
            answers[package.name] = {"found": bool(usable), "text": text}
    return answers


def _llvm() -> dict[str, Any]:
    """Describe in which process LLVM compiles, and the overhead of that."""
    if not cpu_target.has_compiler():
        return {"found": False, "text": "llvmlite is not installed: only cached and archived kernels run"}
    if settings.read("JITKERNELS_COMPILER") == "process":
        return {"found": True, "text": "LLVM in a helper process, which ends after 2 idle seconds"}
    text = "LLVM in the calling process: the first compilation, also by online tuning, adds some 95 MB to it"
    return {"found": True, "text": f"{text} (JITKERNELS_COMPILER=process: to a helper process instead)"}


def _c_compiler() -> dict[str, Any]:
    command, text = c_source.compiler()
    return {"found": bool(command), "text": text}


def _text(value: Any) -> str:
    """Format a value as one line or one line per entry; for an unavailable item, its reason."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict) and set(value) == {"found", "text"}:
        return str(value["text"]) if value["found"] else f"no: {value['text']}"
    if isinstance(value, dict):
        return "\n".join(f"{_label(key)}: {_text(entry)}" for key, entry in value.items()) or "none"
    return str(value)


def _label(key: str) -> str:
    """Format a key as words; names of variables stay verbatim."""
    return key if key.isupper() else key.replace("_", " ")
