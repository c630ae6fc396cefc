"""Random terminating programs in the kernel language, which are also valid Python.

Integers stay far from 64 bits, divisors are odd and shifts short, so that Python and C must agree.
"""

import re
from random import Random

GRAMMAR = {
    "name": ["a", "b", "i", "j", "k"],
    "number": ["0", "1", "-1", "2", "7", "-8", "13", "98"],
    "leaf": ["<name>", "<number>"],
    "sum": ["+", "-", "*"],
    "bits": ["&", "|", "^"],
    "divide": ["//", "%"],
    "shift": ["<<", ">>"],
    "either": ["and", "or"],
    "less": ["min", "max"],
    "order": ["<", "<=", "==", "!=", ">", ">="],
    "whole": [
        "i",
        "b",
        "<leaf>",
        "(<leaf> <sum> <leaf>)",
        "(<leaf> <bits> <leaf>)",
        "(<leaf> <divide> (<leaf> | 1))",
        "(<leaf> <divide> -8)",
        "(<leaf> <divide> 16)",
        "(<leaf> <shift> (<leaf> & 7))",
        "(<leaf> <either> <leaf>)",
        "~<name>",
        "-<name>",
        "abs(<whole>)",
        "<less>(<whole>, <whole>)",
        "(<whole> if <test> else <whole>)",
        "(<leaf> < <leaf> if <test> else <leaf>)",
        "int(<test>)",
    ],
    "real": [
        "x",
        "y",
        "0.1",
        "-2.5",
        "1e300",
        "float(<leaf>)",
        "(<real> <sum> <real>)",
        "(<real> / (x * x + 1.0))",
        "<less>(<real>, <real>)",
        "abs(<real>)",
        "(<real> if <test> else <real>)",
    ],
    "test": [
        "a < j",
        "k",
        "x <= y",
        "<leaf>",
        "<leaf> <order> <leaf>",
        "<whole> <order> <whole>",
        "<real> <order> <real>",
        "<whole> <order> <whole> <order> <whole>",
        "(<test> <either> <test>)",
        "not (<test>)",
    ],
    "simple": [
        "<name> = <whole> % 10007",
        "x = <real>",
        "y = <real>",
        "<name> += 3",
        "<name> -= 5",
        "<name> //= 7",
        "x <sum>= <real>",
        "a, b = b, a",
        "i, j, k = k, i, j",
        "x, y = (y, x) if <test> else (x, y)",
        "out[<leaf> % 16] = <whole>",
        "out[<leaf> & 15] ^= <whole>",
    ],
    "early": ["continue", "break", "return <leaf>"],
    "range": ["3", "<leaf> % 5, <leaf> % 7", "<leaf> % 7, <leaf> % 5, -2", "<leaf> % 7, <leaf> % 5, <name> % 5 - 2"],
    "block": ["<line>", "<line>\n<line>", "<line>\n<line>\n<line>"],
    "line": [
        "a, k = k + 1, a",
        "j ^= 1",
        "<simple>",
        "if <test>:\n    return <leaf>",
        "if <test>:\n    <block>\nelif <test>:\n    <block>\nelse:\n    <block>",
        "if <test>:\n    <block>",
        "for <name> in range(<range>):\n    <block>",
        "for <name> in range(<range>):\n    <block>\n    if <test>:\n        <early>\n    <block>",
        "t@ = <leaf> % 5\nwhile t@ > 0 and <test>:\n    t@ -= 1\n    <block>",
        "t@ = 3\nwhile t@ > 0:\n    t@ -= 1\n    <block>\n    if <test>:\n        <early>\n    <block>",
    ],
}
"""Expansions of each word; at the depth limit, those without words. ``@`` is the depth."""
DEPTH = 6


def grown(random: Random) -> str:
    """Return the text of ``program(out, floats, a, b)``, which returns an integer."""
    head = ["i, j, k, x, y = 1, 2, 3, 0.5, float(a)"]
    body = _expand(random, "\n".join(["<line>"] * 4), DEPTH)
    lines = [*head, *body.split("\n"), "floats[0], floats[1] = x, y", "return (i ^ j) + k % 10007"]
    return "def program(out, floats, a, b):\n" + "".join(f"    {line}\n" for line in lines)


def _expand(random: Random, text: str, depth: int) -> str:
    """Expand the words of a text recursively, with its indentation."""

    def become(match: re.Match[str]) -> str:
        choices = GRAMMAR[match[2]]
        ends = [choice for choice in choices if "<" not in choice] or choices[:1]
        chosen = random.choice(choices if depth > 0 else ends).replace("@", str(depth))
        return match[1] + _expand(random, chosen, depth - 1).replace("\n", f"\n{match[1]}")

    return re.sub(r"(^ *|)<(\w+)>", become, text, flags=re.MULTILINE)
