"""Rewriting rules of users, `JitConfig.rules`: functions that map a node to its replacement, or to None.

The rewriter tries them at every node, after the rules of the package, until none applies. A rule must keep dtype and
shape; GraphError names one that does not.
"""

from collections.abc import Callable

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import same_shape
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RegisteredRule, RewritePass
from jitkernels.errors import GraphError

Rule = Callable[[Node], Node | None]
"""A rewriting rule of a user: the replacement of a node, or None."""


class UserRules(RewritePass):
    """The pass whose rules are those of the configuration."""

    def entries(self, config: JitConfig) -> list[RegisteredRule]:
        return [RegisteredRule(with_checked_result(rule), (), False) for rule in config.rules]


def with_checked_result(rule: Rule) -> Callable[[Node, MatchContext], Node | None]:
    """The rule with its result checked: GraphError for a result of another dtype or shape, or that is no Node."""

    def apply(node: Node, context: MatchContext) -> Node | None:
        replacement = rule(node)
        if replacement is None:
            return None
        name = getattr(rule, "__name__", repr(rule))
        if not isinstance(replacement, Node):
            raise GraphError(f"rules: {name} returned {replacement!r} for {node!r}: expected a Node or None")
        if replacement.dtype != node.dtype or not same_shape(replacement.shape, node.shape):
            raise GraphError(f"rules: {name} returned {replacement!r} for {node!r}: expected the same dtype and shape")
        return replacement

    return apply


user_rules_pass = UserRules("user_rules")
