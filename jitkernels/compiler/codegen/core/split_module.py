"""Split the loop nests of a large segment over two modules, which are compiled in parallel.

Rules:

1. Nests that call each other, or one outlined function, stay in one module, and nests that need what the entry's
   module defines stay there: the second module needs no code of the first one.
2. The second module takes the largest groups of nests that fit in half of the work. Loops and branches count
   `OPTIMIZED` times, since they get all of LLVM's passes.
3. The text alone decides, not who is idle: one source has one object. The nests of the second module are named after
   the source, since the loaders of some systems have one name space for all objects.
4. A second module of less than `MIN_SPLIT_CHARS` is not worth the way to another process.

::

    entry, loops, nests a b c d          entry, loops, nests b d   |   nests a c
"""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from jitkernels.runtime.loading.build_ahead import FAIR_COST, OPTIMIZED

MIN_SPLIT_CHARS = FAIR_COST
_DEFINED = re.compile(r"^define [^@]*@([\w.$-]+)\(", re.MULTILINE)
_GLOBAL = re.compile(r"^@([\w.$-]+) = ", re.MULTILINE)
_NAMED = re.compile(r"@([\w.$-]+)")


def split_nests(nests: Sequence[str], own: Sequence[str], *, is_optimized: bool) -> tuple[list[str], list[str]]:
    """The nests that are compiled with the segment's `own` functions, and those of the second module, maybe none."""
    groups = sorted(_groups_of(nests), key=lambda group: -sum(len(nests[i]) for i in group))
    rest = sum(map(len, own)) * (OPTIMIZED if is_optimized else 1)
    budget, size = (rest + sum(map(len, nests))) // 2, 0
    second: set[int] = set()
    defined = {name for text in own for name in (*functions_of([text]), *_GLOBAL.findall(text))}
    for group in groups:
        cost = sum(len(nests[i]) for i in group)
        if size + cost <= budget and not any(defined & {*_NAMED.findall(nests[i])} for i in group):
            second.update(group)
            size += cost
    if size < MIN_SPLIT_CHARS:
        return [*nests], []
    return [nests[i] for i in range(len(nests)) if i not in second], [nests[i] for i in sorted(second)]


def functions_of(texts: Sequence[str]) -> tuple[str, ...]:
    """The names of the functions that texts define."""
    return tuple(name for text in texts for name in _DEFINED.findall(text))


def qualified(text: str, names: AbstractSet[str], symbol: str) -> str:
    """The text with the functions of these names named after a symbol."""
    return _NAMED.sub(lambda found: f"@{symbol}.{found[1]}" if found[1] in names else found[0], text)


def _groups_of(nests: Sequence[str]) -> list[list[int]]:
    """The connected components of nests that name each other's functions, by their places."""
    home = {name: i for i, text in enumerate(nests) for name in functions_of([text])}
    group = [*range(len(nests))]

    def root(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for i, text in enumerate(nests):
        for name in {*_NAMED.findall(text)} & home.keys():
            group[root(i)] = root(home[name])
    members: dict[int, list[int]] = {}
    for i in range(len(nests)):
        members.setdefault(root(i), []).append(i)
    return [*members.values()]
