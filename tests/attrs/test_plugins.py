"""Plug-ins: kernels of other packages are found whatever is called first, and a broken package does no harm."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import FOLDERS, HERE, python

from jitkernels.attrs.schema import plugins
from jitkernels.core.atomic_files import _said

GOOD = (HERE / "plugin", "jitkernels_test_plugin")


def install(site: Path, module: str, text: str | None = None) -> None:
    """What an installer leaves for a package with an entry point, and its module if a text is given."""
    information = site / f"{module}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[jitkernels.kernels]\n{module} = {module}\n")
    if text is not None:
        (site / f"{module}.py").write_text(text)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A search path on which the package of `tests/plugin` is installed."""
    install(tmp_path, GOOD[1])
    return os.pathsep.join(map(str, (tmp_path, GOOD[0], *FOLDERS)))


def run(code: str, path: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, with the objects that all tests share."""
    return subprocess.run(
        [sys.executable, "-c", f"import jitkernels as jk\n{code}"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "first",
    [
        "print(jk.vmiddle([1.0], [3.0]))",
        "print(jk.VMiddleAttr(n=3).text())",
        "print(jk.KernelType.VMIDDLE)",
        "print(jk.KernelType('VMIDDLE'), 'VMIDDLE' in [member.name for member in jk.KernelType])",
        "from jitkernels import vmiddle, VMiddleAttr",
        "from jitkernels import *",
        "print({'vmiddle', 'VMiddleAttr'} <= set(dir(jk)))",
        "print(jk.vmul([1.0], [3.0]))",
        "import jitkernels_test_plugin",
        "with jk.use(vmiddle='handmade'): print(jk.vmiddle([1.0], [3.0]))",
        "with jk.use(implementation='theirs'): print(jk.vmul([1.0], [3.0]))",
    ],
)
def test_names_exist_in_any_order_of_access(first: str, path: str) -> None:
    code = f"""
{first}
print(jk.vmiddle([1.0], [4.0], out=None), jk.VMiddleAttr(n=2), jk.KernelType.VMIDDLE, hasattr(jk, "vmiddel"))
print(*jk.get_all_candidates(jk.VMiddleAttr(n=2)), "theirs" in jk.get_all_candidates(jk.VMulAttr(n=2)))
"""
    done = run(code, path)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-2:] == [
        "[2.5] VMiddleAttr(n=2, dtype='float32') KernelType.VMIDDLE False",
        "handmade refer True",
    ]


def test_importing_the_package_loads_no_plugin(path: str) -> None:
    code = 'import sys\nprint([n for n in ("importlib.metadata", "jitkernels_test_plugin") if n in sys.modules])'
    assert run(code, path).stdout == "[]\n"


BROKEN = {
    "raises": "raise ValueError('no kernels today')",
    "exits": "import sys\nsys.exit(3)",
    "is no Python": "def",
    "misses a module": "import no_such_module_anywhere",
    "is not there": None,
    "registers half": "import jitkernels_test_plugin\nraise RuntimeError('after the first half')",
    "takes a name of ours": (
        "from jitkernels.attrs.vector import VectorAttr, vector\n"
        "class Mine(VectorAttr, kernel_type='VMUL'):\n    arrays = (vector('x', 'in'), vector('y', 'out'))"
    ),
    "names what does not exist": "import jitkernels as jk\njk.implements(jk.VNoneAttr, name='mine')",
}
WHOLE = """
from jitkernels.attrs.schema.registry import all_schemas, implementations
print(jk.vmul([2.0], [3.0]), jk.softmax([[1.0]]))
theirs = [row.__name__ for row in all_schemas() if not row.__module__.startswith("jitkernels.")]
print("theirs" in implementations(jk.VMulAttr), theirs, len(jk.KernelType) == len(all_schemas()))
"""


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_plugin_is_one_warning(how: str, tmp_path: Path) -> None:
    """It leaves nothing behind, not even what it registered before it failed."""
    install(tmp_path, "broken_kernels", BROKEN[how])
    if how == "is not there":
        (tmp_path / "broken_kernels.py").unlink(missing_ok=True)
    # The good package can be imported, but is not installed: only the broken one asks for it.
    path = os.pathsep.join(map(str, (tmp_path, GOOD[0], *FOLDERS)))
    code = f"import jitkernels.attrs.schema.plugins as p\nreal = p.installed\np.installed = lambda: {ONLY}\n{WHOLE}"
    done = run(code.replace("NAME", "broken_kernels"), path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[6.] [[1.]]", "False [] True"]
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("the kernels of broken_kernels are ignored: ")


ONLY = "[entry for entry in real() if entry.name == 'NAME']"


def test_a_broken_plugin_does_not_hide_others(path: str, tmp_path: Path) -> None:
    install(tmp_path, "a_broken_package", "raise ValueError('no kernels today')")
    done = run(WHOLE, path)
    assert done.stdout.splitlines() == ["[6.] [[1.]]", "True ['VMiddleAttr'] True"]
    assert done.stderr == "the kernels of a_broken_package are ignored: ValueError: no kernels today\n"


def test_a_row_without_reference_is_ignored(tmp_path: Path) -> None:
    install(tmp_path, "half_kernels", (GOOD[0] / GOOD[1] / "middle.py").read_text())
    path = os.pathsep.join(map(str, (tmp_path, *FOLDERS)))
    code = f"import jitkernels.attrs.schema.plugins as p\nreal = p.installed\np.installed = lambda: {ONLY}\n{WHOLE}"
    done = run(code.replace("NAME", "half_kernels"), path)
    assert done.stdout.splitlines() == ["[6.] [[1.]]", "False [] True"]
    assert len(done.stderr.splitlines()) == 1
    assert "the kernel VMIDDLE is ignored: it has no implementation 'refer'" in done.stderr


def test_damaged_metadata_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search path that cannot be read counts as empty."""
    install(tmp_path, "damaged")
    (tmp_path / "damaged-1.0.dist-info" / "entry_points.txt").write_bytes(b"jitkernels.kernels\xff\xfe[")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nowhere"), "\0", *sys.path])
    _said.discard(plugins.ENTRY_POINT_GROUP)
    assert all(entry.name != "damaged" for entry in plugins.installed())


def test_fast_scan_finds_all_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of both installers, an archive, a file in the way, and paths without any package."""
    look: Callable[[str], bool] = plugins._may_name_the_group
    assert not look(str(tmp_path))
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "other-1.0.dist-info" / "entry_points.txt").write_text("[console_scripts]\na = b\n")
    (tmp_path / "file-1.0.dist-info").write_text("not a folder")
    assert not look(str(tmp_path))
    install(tmp_path, "some_kernels")
    assert look(str(tmp_path))
    archive = tmp_path / "archive.zip"
    archive.write_bytes(b"PK")
    assert look(str(archive))
    for folder in (".dist-info", ".egg-info"):
        place = tmp_path / f"place{folder}"
        (place / f"x{folder}").mkdir(parents=True)
        (place / f"x{folder}" / "entry_points.txt").write_text("[jitkernels.kernels]\na = b\n")
        assert look(str(place))


def test_the_suite_covers_plugins(path: str) -> None:
    """Rows and implementations of a plug-in pass the tests that the registry generates."""
    arguments = ["-q", "-p", "no:cacheprovider", "-k", "vmiddle or theirs", "--no-header"]
    modules = [
        str(path)
        for name in ("registry", "values", "special_values", "everyday")
        for path in HERE.rglob(f"test_{name}.py")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, *modules],
        cwd=HERE.parent,
        env={**os.environ, "PYTHONPATH": path, "JITKERNELS_TEST_CACHE_DIR": os.environ["JITKERNELS_CACHE_DIR"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "vmul-theirs" not in done.stdout, "nothing failed or was skipped"


def test_cli_explains_plugins(path: str) -> None:
    code = "from jitkernels.tools.cli import main\nmain(['explain', 'vmiddle', 'n=5'])"
    assert "handmade" in python(code, PYTHONPATH=path)
