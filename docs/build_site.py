"""Build the site of this version into a folder of its own, beside those of other versions.

python docs/build_site.py FOLDER

FOLDER gets a folder named by the version, `versions.json`, the versions it has, newest first, and `index.html`, which
leads to the newest. Needs the extra `docs`. The exit status is that of Sphinx, for which warnings are errors.
"""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.version import InvalidVersion, Version

REDIRECT = """<!doctype html>
<meta charset="utf-8"><title>jitkernels</title>
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<a href="{newest}/index.html">jitkernels {newest}</a>
"""


def build(folder: Path) -> int:
    """Build the pages, then the list of versions and the redirection."""
    version = metadata.version("jitkernels")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    status = subprocess.run([*command, Path(__file__).parent, folder / version]).returncode
    if status == 0:
        versions = sorted(filter(None, map(_version, folder.iterdir())), reverse=True)
        (folder / "versions.json").write_text(json.dumps([str(one) for one in versions]))
        (folder / "index.html").write_text(REDIRECT.format(newest=versions[0]))
    return status


def _version(path: Path) -> Version | None:
    try:
        return Version(path.name) if path.is_dir() else None
    except InvalidVersion:
        return None


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"expected one folder\n\n{__doc__}")
    sys.exit(build(Path(sys.argv[1])))
