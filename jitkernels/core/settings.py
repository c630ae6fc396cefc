"""The environment variables in one table, which reading, checking, ``jitkernels info`` and the README all use.

A wrong value raises an error that names the variable when it is first needed. An unknown name with our prefix is
reported once, when the first variable is read: not at import, which stays fast.
"""

import functools
import os
import re

from jitkernels.core.atomic_files import warn_once
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import UnknownNameError

VARIABLE_PREFIX = "JITKERNELS_"
OF_TESTS = f"{VARIABLE_PREFIX}TEST_"
"""Prefix of variables that configure test suites; the package reads none of them."""


@frozen_dataclass
class Setting:
    """One variable: `expected` describes its values, `pattern` is that as a regular expression, None for any text."""

    name: str
    meaning: str
    expected: str
    default: str
    pattern: str | None = None
    fallback: str = ""

    def check(self, value: str) -> str:
        """Return `value`; raises UnknownNameError if the variable does not accept it."""
        if self.pattern is not None and re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise UnknownNameError(f"{self.name}: expected {self.expected}, got {value!r}")
        return value


def _of_words(name: str, meaning: str, *words: str) -> Setting:
    *some, last = words
    return Setting(name, meaning, f"{', '.join(some)} or {last}", words[0], "|".join(words), words[0])


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "JITKERNELS_USE", "implementations to pin", "vmul=mkl,softmax=gen, or refer for every kernel", "no pins"
        ),
        _of_words(
            "JITKERNELS_TUNE",
            "when to measure: as calls earn it, never, or not even to look at measurements",
            "auto", "replay", "off",
        ),
        _of_words(
            "JITKERNELS_POLICY",
            "what a choice may depend on: measurements, or nothing but the attr",
            "fastest", "reproducible",
        ),
        Setting(
            "JITKERNELS_NUM_THREADS",
            "the most threads a kernel may use; `OMP_NUM_THREADS` and `threadpoolctl` are obeyed too",
            "an int from 1 to 999999999",
            "the cores of the process",
            r"\s*[1-9][0-9]{0,8}\s*",
        ),
        Setting(
            "JITKERNELS_CACHE_DIR",
            "folder of built kernels and measurements, private to you",
            "a folder",
            "your cache folder",
        ),
        Setting(
            "JITKERNELS_PACK",
            "packs of built kernels and measurements, read where the cache has none (`cache pack`)",
            "files, with colons between them",
            "none",
        ),
        _of_words(
            "JITKERNELS_KEEP_INTERM",
            "whether to keep the LLVM IR, assembly and objects of what is built, with readable names",
            "0", "1",
        ),
        Setting("JITKERNELS_WORKDIR", "where those are kept", "a folder", "jitkernels-work", None, "jitkernels-work"),
        Setting(
            "JITKERNELS_OPT_LEVEL",
            "how far expressions are optimized, as `JitConfig.opt_level`; a negative level checks each result",
            "an int from -3 to 3",
            "3",
            r"-?[0-3]",
            "3",
        ),
        _of_words(
            "JITKERNELS_BACKEND",
            "what runs expressions: code by LLVM, the same loops by numba, or NumPy operation by operation",
            "native", "numba", "interpreter",
        ),
        _of_words(
            "JITKERNELS_COMPILER",
            "where LLVM runs, which takes some 95 MB: in this process, or in a helper process that goes away",
            "inprocess", "process",
        ),
        Setting(
            "JITKERNELS_CPU_NAME",
            "the CPU to generate code for",
            "LLVM's name of a CPU, such as znver4",
            "this one",
            r"[A-Za-z0-9][A-Za-z0-9_.+-]*",
        ),
        Setting(
            "JITKERNELS_CPU_FEATURES",
            "CPU features to do without",
            "features and commas between them, such as -avx512f,-f16c",
            "none",
        ),
    )
}  # fmt: skip


def read(name: str) -> str:
    """The checked value of a variable; its fallback where it is unset or empty.

    Raises UnknownNameError for a value that the variable does not accept.
    """
    _report_unknown_names()
    value = os.environ.get(name)
    return _checked(name, value) if value else SETTINGS[name].fallback


@functools.lru_cache(maxsize=64)
def _checked(name: str, value: str) -> str:
    return SETTINGS[name].check(value)


_reported_unknown = False


def _report_unknown_names() -> None:
    global _reported_unknown
    if _reported_unknown:
        return
    _reported_unknown = True
    for name in unknown():
        import difflib

        ends = [known.removeprefix(VARIABLE_PREFIX) for known in SETTINGS]
        near = difflib.get_close_matches(name.upper().removeprefix(VARIABLE_PREFIX), ends, 1)
        known = f"did you mean {VARIABLE_PREFIX}{near[0]}?" if near else f"there are {', '.join(SETTINGS)}"
        warn_once(name, f"there is no setting {name!r}: {known}")


def present() -> dict[str, str]:
    """The variables of ours in the environment with their raw values, checked or not; unknown names come last."""
    return {name: os.environ[name] for name in (*SETTINGS, *unknown()) if name in os.environ}


def unknown() -> list[str]:
    """The variables of the environment that have our prefix and are not in the table."""
    return [
        name
        for name in os.environ
        if name.upper().startswith(VARIABLE_PREFIX) and name not in SETTINGS and not name.startswith(OF_TESTS)
    ]


def table() -> str:
    """All variables as a Markdown table."""
    lines = ["| variable | meaning | accepted | default |", "|---|---|---|---|"]
    lines += [f"| `{s.name}` | {s.meaning} | {s.expected} | {s.default} |" for s in SETTINGS.values()]
    return "\n".join(lines)
