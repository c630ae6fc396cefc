"""The forms between a source and its object, kept with readable names for those who ask for them."""

from jitkernels import machine, settings
from jitkernels.disk import say_once


def keeps_intermediates() -> bool:
    """Whether ``JITKERNELS_KEEP_INTERM`` asks for the forms between source and object."""
    return settings.read("JITKERNELS_KEEP_INTERM") != "0"


def keep_intermediates(name: str, forms: dict[str, str], code: bytes) -> None:
    """Write the forms of a source and its object side by side, if that is asked for."""
    if not keeps_intermediates():
        return
    try:
        place = machine.work_directory()
        for suffix, text in forms.items():
            (place / f"{name}.{suffix}").write_text(text)
        (place / f"{name}.o").write_bytes(code)
    except OSError as error:
        say_once("intermediates", f"cannot keep intermediate files ({error}): continuing without them")
