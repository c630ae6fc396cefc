"""Run code in fresh interpreters, for figures that depend on process start and cache contents."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jitkernels.errors import BuildError


def run(module: str, function: str, *arguments: Any, cache: Path | None = None, **settings: str) -> Any:
    """Return the result of a module's function in a fresh interpreter; arguments and result are JSON values.

    `cache` is the cache folder of that process, by default that of this one; `settings` are environment variables.
    Raises BuildError with the last lines of its output if it fails.
    """
    text = (
        f"import json, sys; from {module} import {function} as child; "
        "answer = child(*json.loads(sys.argv[1])); print(json.dumps(answer))"
    )
    chosen = {} if cache is None else {"JITKERNELS_CACHE_DIR": str(cache)}
    return script(text, json.dumps(arguments), **chosen, **settings)


def script(text: str, *arguments: str, **settings: str) -> Any:
    """Run a script and return its last output line, parsed as JSON."""
    path = os.pathsep.join(entry or "." for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **settings},
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-3:]
        raise BuildError(f"a benchmark's process ended with {done.returncode}: {' '.join(last)}")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def empty_cache() -> Iterator[Path]:
    """Yield an empty private folder, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="jitkernels-bench-") as folder:
        yield Path(folder)
