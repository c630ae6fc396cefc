"""``jitkernels info``: what this machine has that decides which kernels can run and how fast."""

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
from jitkernels import coverage, machine, settings
from jitkernels.cli import cache, output
from jitkernels.native import c, launch, openmp, threads


def run(*, json: bool) -> int:
    """Print everything found, as a table or as one JSON object."""
    found = collect()
    if json:
        print(json_text.dumps(found, indent=1))
        return 0
    table = output.table("", "")
    table.show_header = False
    kept = found["cache"]
    place = f"{kept['place'] or 'none: no private folder can be had'}, {output.size(kept['bytes'])}"
    for name, value in {**found, "cache": place}.items():
        table.add_row(name.replace("_", " "), escape(_text(value)))
    output.show(table)
    return 0


def kernels(*, json: bool) -> int:
    """Print the table of coverage: every implementation of every kernel by dtype, usable here or why not."""
    found = list(coverage.covered())
    if json:
        print(json_text.dumps([asdict(entry) for entry in found], indent=1))
        return 0
    table = output.table("kernel", "implementation", "dtypes usable here", "why not")
    for (kernel, name), entries in itertools.groupby(
        found, lambda entry: (entry.kernel, entry.implementation)
    ):
        listed = list(entries)
        usable = " ".join(entry.dtype for entry in listed if entry.usable)
        reasons = dict.fromkeys(f"{entry.dtype}: {entry.why}" for entry in listed if entry.why)
        table.add_row(kernel, name, usable, escape("\n".join(reasons)))
    output.show(table)
    return 0


def collect() -> dict[str, Any]:
    """Everything found, ready for JSON."""
    slow = launch.reason_for_slow_path()
    library, origin = openmp.runtime()
    return {
        "jitkernels": jitkernels.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "packages": {
            name: machine.version(name) for name in machine.PACKAGES_OF_CODE if name != "jitkernels"
        },
        "cpu": machine.cpu_name(),
        "features": sorted(machine.cpu_features()),
        "vector_bytes": machine.target().vector_bytes,
        "cores": machine.cpu_count(),
        "threads": threads.get_num_threads(),
        "openmp": {"found": library is not None, "text": origin},
        "launcher": {"found": slow is None, "text": slow or "compiled"},
        "libraries": libraries(),
        "c_compiler": _compiler(),
        "cache": cache.summary(),
        "settings": settings.present(),
    }


def libraries() -> dict[str, dict[str, Any]]:
    """Each optional library: whether it was found, and where or why not."""
    answers = {}
    for package in pkgutil.iter_modules(jitkernels.more.__path__):
        name = f"jitkernels.more.{package.name}.library"
        if package.ispkg and importlib.util.find_spec(name) is not None:
            usable, text = importlib.import_module(name).status()
            answers[package.name] = {"found": bool(usable), "text": text}
    return answers


def _compiler() -> dict[str, Any]:
    command, text = c.compiler()
    return {"found": bool(command), "text": text}


def _text(value: Any) -> str:
    """A value as one line or as a line per entry; what is not there says why."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict) and set(value) == {"found", "text"}:
        return str(value["text"]) if value["found"] else f"no: {value['text']}"
    if isinstance(value, dict):
        return "\n".join(f"{_label(key)}: {_text(entry)}" for key, entry in value.items()) or "none"
    return str(value)


def _label(key: str) -> str:
    """A key as words; names of variables stay as they are typed."""
    return key if key.isupper() else key.replace("_", " ")
