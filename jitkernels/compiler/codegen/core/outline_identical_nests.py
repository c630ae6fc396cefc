"""Outline congruent loop nests: nests that differ only by the frame words of their arrays become one function.

Large programs often do few things to many arrays, and LLVM takes milliseconds for each nest.
"""

import re
from collections.abc import Sequence

MIN_OUTLINED_LINES = 50
"""The least lines of a nest for which a thunk with a table of frame words compiles faster."""
_PLACE = re.compile(r"^  (%\S+) = getelementptr i64, ptr %frame, i64 (\d+)$", re.MULTILINE)
_HEAD = re.compile(r"define internal i64 @(\S+)\((ptr [^,]*%(\S+), i64 %begin, i64 %end)\) noinline nounwind \{\n")
_FUNCTIONS = re.compile(r"\n(?=define )")
_LABEL = re.compile(r"^\S+:$", re.MULTILINE)


def outline_congruent(texts: Sequence[str]) -> list[str]:
    """Return the texts of the nests, with duplicates replaced by thunks that call the outlined function."""
    groups: dict[str, list[int]] = {}
    texts = [function for text in texts for function in _FUNCTIONS.split(text)]
    for number, text in enumerate(texts):
        head = _HEAD.match(text)
        if head is not None and text.count("\n") >= MIN_OUTLINED_LINES and _uses_frame_at_entry(text):
            groups.setdefault(head[2] + _PLACE.sub(r"  \1", text[head.end() :]), []).append(number)
    results = [*texts]
    for numbers in groups.values():
        if len(numbers) > 1:
            first = _HEAD.match(texts[numbers[0]])
            assert first is not None, "matched before"
            name = f"{first[1]}.shared"
            for number in numbers:
                results[number] = _thunk(texts[number], name)
            results.append(_outlined(texts[numbers[0]], name))
    return results


def _uses_frame_at_entry(text: str) -> bool:
    """Return whether the nest uses the frame only at its entry, and only by constant words."""
    label = _LABEL.search(text)
    begin = text[: label.start()] if label is not None else text
    return len(re.findall(r"%frame\b", text)) == len(_PLACE.findall(begin)) + 1


def _thunk(text: str, name: str) -> str:
    """Return the thunk of a nest, which passes its frame words to the outlined function."""
    head = _HEAD.match(text)
    assert head is not None, "matched before"
    words = [word for _, word in _PLACE.findall(text)]
    listed = ", ".join(f"i64 {word}" for word in words)
    return "\n".join(
        [
            f"@{head[1]}.places = private constant [{len(words)} x i64] [{listed}]",
            f"{head[0].rstrip()}",
            f"  %status = tail call i64 @{name}({head[2]}, ptr @{head[1]}.places)",
            "  ret i64 %status",
            "}",
        ]
    )


def _outlined(text: str, name: str) -> str:
    """Return the outlined function, which takes its frame words as an argument."""
    head = _HEAD.match(text)
    assert head is not None, "matched before"
    numbers = iter(range(len(_PLACE.findall(text))))

    def from_places(match: re.Match[str]) -> str:
        own = match[1]
        return "\n".join(
            [
                f"  {own}.at = getelementptr i64, ptr %places, i64 {next(numbers)}",
                f"  {own}.word = load i64, ptr {own}.at",
                f"  {own} = getelementptr i64, ptr %frame, i64 {own}.word",
            ]
        )

    new = f"define internal i64 @{name}({head[2]}, ptr noalias readonly %places) noinline nounwind {{\n"
    return f"{new}{_PLACE.sub(from_places, text[head.end() :])}"
