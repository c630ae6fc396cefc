"""Make a wheel of kernel archives, the package `jitkernels_warm`: installed beside the package, it needs no compiler.

Each archive is for one CPU family, Python and NumPy; archives of several families, each written on a machine of its
own, share a wheel. hatchling, the build backend of the package itself, writes it, with the same bytes for the same
archives.
"""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jitkernels.codegen import kernel_archive
from jitkernels.errors import ArgumentError, NotUsableError

COMMON = ("system", "python", "numpy", "jitkernels")
"""Facts that all archives of a wheel share, since pip chooses among wheels by them."""
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "jitkernels-warm"
version = "{jitkernels}"
description = "Built kernels of jitkernels for {families}"
license = "Apache-2.0"
requires-python = ">=3.11"
dependencies = ["jitkernels=={jitkernels}", "numpy=={numpy}"]

[tool.hatch.build.targets.wheel]
packages = ["jitkernels_warm"]

[tool.hatch.build.hooks.custom]
"""
HOOK = """
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data.update(tag="{tag}", pure_python=False)
"""
MODULE = '''"""Kernel archives, one per CPU family and Python, which jitkernels reads."""\n'''


def write(folder: Path, archives: Sequence[Path]) -> Path:
    """Write a wheel of archives to a folder and return its path.

    Raises ArgumentError for archives that are damaged, of one CPU family, or of different systems, Pythons, or
    versions of NumPy or of the package; NotUsableError without hatchling.
    """
    try:
        from hatchling.builders.wheel import WheelBuilder
    except ImportError as error:
        raise NotUsableError(f"wheels need hatchling: pip install 'jitkernels[wheels]' ({error})") from error
    facts = [_facts(path) for path in archives]
    if not facts:
        raise ArgumentError("archives: expected at least one, got none")
    for name in COMMON:
        if len({one[name] for one in facts}) > 1:
            found = ", ".join(f"{path} is for {one[name]}" for path, one in zip(archives, facts, strict=True))
            raise ArgumentError(f"archives: expected one {name}, but {found}")
    families = [one["cpu"] for one in facts]
    if len({*families}) < len(families):
        raise ArgumentError(f"archives: expected different CPU families, got {', '.join(families)}")
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary)
        package = project / kernel_archive.WARM_PACKAGE
        package.mkdir()
        (package / "__init__.py").write_text(MODULE)
        for path, one in zip(archives, facts, strict=True):
            shutil.copyfile(path, package / kernel_archive.installed_name(one["cpu"], one["python"]))
        description = {name: facts[0][name] for name in COMMON} | {"families": ", ".join(sorted(families))}
        (project / "pyproject.toml").write_text(PROJECT.format(**description))
        (project / "hatch_build.py").write_text(HOOK.format(tag=_tag(facts[0])))
        (built,) = WheelBuilder(str(project)).build(directory=str(folder), versions=["standard"])
    return Path(built)


def _facts(path: Path) -> dict[str, str]:
    """What an archive is for."""
    try:
        return kernel_archive.environment_of(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"archives: {path} is not a pack: {error}") from error


def _tag(facts: dict[str, str]) -> str:
    """The compatibility tag of wheels for a Python and a system: ``cp311-none-linux_x86_64``."""
    kind, _, version = facts["python"].partition("-")
    system = facts["system"].replace("-", "_").replace(".", "_")
    return f"{'cp' if kind == 'cpython' else kind}{version}-none-{system}"
