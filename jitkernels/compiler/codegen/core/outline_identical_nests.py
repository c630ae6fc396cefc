"""Nests that differ by the places of their arrays in the frame alone: one function, which is given the places.

Much code is often a few things done to many arrays, and LLVM takes milliseconds for each nest.
"""

import re
from collections.abc import Sequence

LEAST = 50
"""Lines of a nest from which on a function that hands over its places is less to make."""
_PLACE = re.compile(r"^  (%\S+) = getelementptr i64, ptr %frame, i64 (\d+)$", re.MULTILINE)
_HEAD = re.compile(
    r"define internal i64 @(\S+)\((ptr [^,]*%(\S+), i64 %begin, i64 %end)\) noinline nounwind \{\n"
)
_FUNCTIONS = re.compile(r"\n(?=define )")
_LABEL = re.compile(r"^\S+:$", re.MULTILINE)


def shared(texts: Sequence[str]) -> list[str]:
    """The texts of nests, where those that are alike call the first of them with places of their own."""
    groups: dict[str, list[int]] = {}
    texts = [function for text in texts for function in _FUNCTIONS.split(text)]
    for number, text in enumerate(texts):
        head = _HEAD.match(text)
        if head is not None and text.count("\n") >= LEAST and _begins_with_places(text):
            groups.setdefault(head[2] + _PLACE.sub(r"  \1", text[head.end() :]), []).append(number)
    found = [*texts]
    for numbers in groups.values():
        if len(numbers) > 1:
            first = _HEAD.match(texts[numbers[0]])
            assert first is not None, "asked"
            name = f"{first[1]}.alike"
            for number in numbers:
                found[number] = _calling(texts[number], name)
            found.append(_given_places(texts[numbers[0]], name))
    return found


def _begins_with_places(text: str) -> bool:
    """Whether the frame is looked at before all loops alone, and by its places."""
    label = _LABEL.search(text)
    begin = text[: label.start()] if label is not None else text
    return len(re.findall(r"%frame\b", text)) == len(_PLACE.findall(begin)) + 1


def _calling(text: str, name: str) -> str:
    """A nest that calls another function, with its places."""
    head = _HEAD.match(text)
    assert head is not None, "asked"
    words = [word for _, word in _PLACE.findall(text)]
    listed = ", ".join(f"i64 {word}" for word in words)
    return "\n".join(
        [
            f"@{head[1]}.places = private constant [{len(words)} x i64] [{listed}]",
            f"{head[0].rstrip()}",
            f"  %found = tail call i64 @{name}({head[2]}, ptr @{head[1]}.places)",
            "  ret i64 %found",
            "}",
        ]
    )


def _given_places(text: str, name: str) -> str:
    """A nest with its places as an argument."""
    head = _HEAD.match(text)
    assert head is not None, "asked"
    numbers = iter(range(len(_PLACE.findall(text))))

    def from_places(found: re.Match[str]) -> str:
        own = found[1]
        return "\n".join(
            [
                f"  {own}.at = getelementptr i64, ptr %places, i64 {next(numbers)}",
                f"  {own}.word = load i64, ptr {own}.at",
                f"  {own} = getelementptr i64, ptr %frame, i64 {own}.word",
            ]
        )

    new = f"define internal i64 @{name}({head[2]}, ptr noalias readonly %places) noinline nounwind {{\n"
    return f"{new}{_PLACE.sub(from_places, text[head.end() :])}"
