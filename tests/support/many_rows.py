"""Run pytest with many additional rows, to check that the suite's run time grows slowly.

``python tests/support/many_rows.py 71 --collect-only -q`` adds 71 rows: copies under other names, each with its
reference and its generated kernel, as another package would register them. Arguments after the number go to pytest.
Copies share the objects of their originals, so that the tests are timed and not the compiler.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from processes import FOLDERS
from test_plugins import install

from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.attrs.schema.registry import implementations, implements
from jitkernels.codegen.source_protocol import Source

HERE = Path(__file__).parents[1]
MODULE = "copied_rows"


def register(count: int) -> None:
    """Add `count` copies, of the rows in turn."""
    originals = [row for row in schemas.values() if row.__module__.startswith("jitkernels.")]
    for number in range(count):
        _copy(originals[number % len(originals)], number)


def _copy(original: type[KernelAttr], number: int) -> None:
    parts: dict[str, Any] = {"__doc__": original.__doc__, "__module__": MODULE, "__annotations__": {}}
    name = f"{original.__name__.removesuffix('Attr')}{number}Attr"
    copied: Any = type(name, (original,), parts, kernel_type=f"{original.kernel_type.name}{number}")
    setattr(sys.modules[MODULE], name, copied)  # the module in which copies of its attrs look for it
    known = implementations(original)
    gen = known["gen"]

    def generated(attr: KernelAttr, **variant: Any) -> Source:
        source: Source = gen.function(original(**attr.fields()), **variant)
        return source

    implements(copied, name="gen", can_be_used=gen.can_be_used, variants=gen.variants)(generated)
    implements(copied, name="refer")(known["refer"].function)


def main(count: str, *arguments: str) -> int:
    with tempfile.TemporaryDirectory() as site:
        install(Path(site), MODULE, f"import many_rows\nmany_rows.register({int(count)})\n")
        path = os.pathsep.join([site, *FOLDERS])
        command = [sys.executable, "-m", "pytest", *arguments]
        return subprocess.run(command, cwd=HERE.parent, env=os.environ | {"PYTHONPATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
