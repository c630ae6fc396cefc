"""The environment variables: one table, from which reading, checking, ``jitkernels info`` and the README follow.

A wrong value is an error that names the variable when it is first needed. A name that starts like ours and is
none is said once, when the first variable is read: not at import, which stays as quick as it is.
"""

import functools
import os
import re

from jitkernels.disk import say_once
from jitkernels.errors import UnknownNameError
from jitkernels.records import record

PREFIX = "JITKERNELS_"
OF_TESTS = f"{PREFIX}TEST_"
"""Variables that begin so steer test suites; the package reads none of them."""


@record
class Setting:
    """One variable. `expected` says what it takes, `pattern` is that as a regular expression, None for any text."""

    name: str
    meaning: str
    expected: str
    default: str
    pattern: str | None = None
    fallback: str = ""

    def check(self, value: str) -> str:
        """The value; raises UnknownNameError if it is none of this variable's."""
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
            "JITKERNELS_USE",
            "implementations to pin",
            "vmul=mkl,softmax=gen, or refer for every kernel",
            "no pins",
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
            "how far expressions are optimised, as `JitConfig.opt_level`; a negative level checks each result",
            "an int from -3 to 3",
            "3",
            r"-?[0-3]",
            "3",
        ),
        _of_words(
            "JITKERNELS_BACKEND",
            "what runs expressions: compiled code, or NumPy operation by operation",
            "native", "interpreter",
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
    """What a variable says, checked; its fallback where it is unset or empty.

    Raises UnknownNameError for a value that is none of that variable's.
    """
    _say_what_is_misspelt()
    value = os.environ.get(name)
    return _checked(name, value) if value else SETTINGS[name].fallback


@functools.lru_cache(maxsize=64)
def _checked(name: str, value: str) -> str:
    return SETTINGS[name].check(value)


_looked = False


def _say_what_is_misspelt() -> None:
    global _looked
    if _looked:
        return
    _looked = True
    for name in unknown():
        import difflib

        ends = [known.removeprefix(PREFIX) for known in SETTINGS]
        near = difflib.get_close_matches(name.upper().removeprefix(PREFIX), ends, 1)
        known = f"did you mean {PREFIX}{near[0]}?" if near else f"there are {', '.join(SETTINGS)}"
        say_once(name, f"there is no setting {name!r}: {known}")


def present() -> dict[str, str]:
    """What the environment holds of ours, as it stands there, checked or not; unknown names come last."""
    return {name: os.environ[name] for name in (*SETTINGS, *unknown()) if name in os.environ}


def unknown() -> list[str]:
    """The variables of the environment that are named like ours and are none."""
    return [
        name
        for name in os.environ
        if name.upper().startswith(PREFIX) and name not in SETTINGS and not name.startswith(OF_TESTS)
    ]


def table() -> str:
    """All of them as a Markdown table."""
    lines = ["| variable | meaning | accepted | default |", "|---|---|---|---|"]
    lines += [f"| `{s.name}` | {s.meaning} | {s.expected} | {s.default} |" for s in SETTINGS.values()]
    return "\n".join(lines)
