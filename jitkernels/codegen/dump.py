"""Dumps of intermediate files: LLVM IR, assembly and objects under readable names, on request."""

from jitkernels.core import cache_dirs, settings
from jitkernels.core.atomic_files import warn_once


def dumps_intermediates() -> bool:
    """Return whether ``JITKERNELS_KEEP_INTERM`` requests dumps."""
    return settings.read("JITKERNELS_KEEP_INTERM") != "0"


def dump_intermediates(name: str, forms: dict[str, str], code: bytes) -> None:
    """Dump the intermediate forms of a source and its object side by side, if requested."""
    if not dumps_intermediates():
        return
    try:
        directory = cache_dirs.work_directory()
        for suffix, text in forms.items():
            (directory / f"{name}.{suffix}").write_text(text)
        (directory / f"{name}.o").write_bytes(code)
    except OSError as error:
        warn_once("intermediates", f"cannot keep intermediate files ({error}): continuing without them")
