"""Rules of users, which `JitConfig.rules` has: functions that are given each node and return another for it, or None.

Each is tried at every node, behind the rules of the package, until none applies.
A rule must keep dtype and shape; one that does not is told so, by its name.
"""

from collections.abc import Callable

from jitkernels.errors import GraphError
from jitkernels.graph.config import JitConfig
from jitkernels.graph.extents import same_shape
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.rewriting import Entry, Facts, Rewriting

Rule = Callable[[Node], Node | None]
"""A rule of one's own."""


class Custom(Rewriting):
    """The pass: its rules are those of the configuration."""

    def entries(self, config: JitConfig) -> list[Entry]:
        return [Entry(checked(rule), (), False) for rule in config.rules]


def checked(rule: Rule) -> Callable[[Node, Facts], Node | None]:
    """A rule of which the result is looked at."""

    def apply(node: Node, facts: Facts) -> Node | None:
        found = rule(node)
        if found is None:
            return None
        name = getattr(rule, "__name__", repr(rule))
        if not isinstance(found, Node):
            raise GraphError(f"rules: {name} returned {found!r} for {node!r}: expected a Node or None")
        if found.dtype != node.dtype or not same_shape(found.shape, node.shape):
            raise GraphError(f"rules: {name} made {found!r} of {node!r}: expected the same dtype and shape")
        return found

    return apply


custom = Custom("custom")
