"""Names and features of 64-bit Arm CPUs as Linux reports them: user code cannot read the ID registers."""

from pathlib import Path

NAMES = {
    "0x41": {
        "0xd02": "cortex-a34", "0xd04": "cortex-a35", "0xd8f": "cortex-a320", "0xd03": "cortex-a53",
        "0xd05": "cortex-a55", "0xd46": "cortex-a510", "0xd80": "cortex-a520", "0xd88": "cortex-a520ae",
        "0xd07": "cortex-a57", "0xd06": "cortex-a65", "0xd43": "cortex-a65ae", "0xd08": "cortex-a72",
        "0xd09": "cortex-a73", "0xd0a": "cortex-a75", "0xd0b": "cortex-a76", "0xd0e": "cortex-a76ae",
        "0xd0d": "cortex-a77", "0xd41": "cortex-a78", "0xd42": "cortex-a78ae", "0xd4b": "cortex-a78c",
        "0xd47": "cortex-a710", "0xd4d": "cortex-a715", "0xd81": "cortex-a720", "0xd89": "cortex-a720ae",
        "0xd87": "cortex-a725", "0xd44": "cortex-x1", "0xd4c": "cortex-x1c", "0xd48": "cortex-x2",
        "0xd4e": "cortex-x3", "0xd82": "cortex-x4", "0xd85": "cortex-x925", "0xd4a": "neoverse-e1",
        "0xd0c": "neoverse-n1", "0xd49": "neoverse-n2", "0xd8e": "neoverse-n3", "0xd40": "neoverse-v1",
        "0xd4f": "neoverse-v2", "0xd84": "neoverse-v3", "0xd83": "neoverse-v3ae", "0xd15": "cortex-r82",
        "0xd14": "cortex-r82ae",
    },
    "0x42": {"0x516": "thunderx2t99", "0x0516": "thunderx2t99", "0xaf": "thunderx2t99", "0x0af": "thunderx2t99"},
    "0x43": {"0xaf": "thunderx2t99", "0x0af": "thunderx2t99", "0xa1": "thunderxt88", "0x0a1": "thunderxt88"},
    "0x46": {"0x001": "a64fx", "0x003": "fujitsu-monaka"},
    "0x48": {"0xd01": "tsv110"},
    "0x4e": {"0x004": "carmel", "0x10": "olympus", "0x010": "olympus"},
    "0x51": {
        "0x800": "cortex-a73", "0x801": "cortex-a73", "0x802": "cortex-a75", "0x803": "cortex-a75",
        "0x804": "cortex-a76", "0x805": "cortex-a76", "0xc00": "falkor", "0xc01": "saphira", "0x001": "oryon-1",
    },
    "0x61": {
        **dict.fromkeys(("0x020", "0x021", "0x022", "0x023", "0x024", "0x025", "0x028", "0x029"), "apple-m1"),
        **dict.fromkeys(("0x030", "0x031", "0x032", "0x033", "0x034", "0x035", "0x038", "0x039"), "apple-m2"),
        **dict.fromkeys(("0x048", "0x049"), "apple-m3"),
    },
    "0x6d": {"0xd49": "neoverse-n2"},
    "0xc0": {"0xac3": "ampere1", "0xac4": "ampere1a", "0xac5": "ampere1b"},
}  # fmt: skip
"""LLVM's names by implementer and part number."""
FEATURES = {
    "asimd": "neon", "fp": "fp-armv8", "crc32": "crc", "atomics": "lse", "sha3": "sha3", "sm4": "sm4", "sve2": "sve2",
    "sveaes": "sve-aes", "svesha3": "sve-sha3", "svesm4": "sve-sm4",
}  # fmt: skip
"""LLVM's feature names by Linux's. LLVM derives features that Linux does not report from the CPU name."""
TOGETHER = {"aes": {"aes", "pmull"}, "sha2": {"sha1", "sha2"}, "sve": {"sve"}, "rand": {"rng"}}
"""Features that LLVM reports absent unless Linux reports all of these."""


def described(text: str) -> tuple[str, dict[str, bool]]:
    """The name and the features of a CPU from the text of ``/proc/cpuinfo``; of several core types the last."""
    implementer = part = ""
    reported: set[str] | None = None
    for line in text.splitlines():
        key, _, value = line.partition(":")
        match key.strip():
            case "CPU implementer":
                implementer = value.strip()
            case "CPU part":
                part = value.strip()
            case "Features" if reported is None:
                reported = set(value.split())
    reported = reported or set()
    features = {own: True for name, own in FEATURES.items() if name in reported}
    features |= {own: names <= reported for own, names in TOGETHER.items()}
    return NAMES.get(implementer, {}).get(part, "generic"), features


def host() -> tuple[str, dict[str, bool]]:
    """The name and the features of this CPU. Raises OSError where the system does not report them."""
    return described(Path("/proc/cpuinfo").read_text(errors="replace"))
