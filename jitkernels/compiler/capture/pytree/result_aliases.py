"""Results that may share memory with one another or with arguments: NumPy decides that in the run, code cannot."""

from collections.abc import Sequence

from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.pytree.transposed_results import are_equal
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError


def check_aliases(tracer: Tracer, arguments: Sequence[Storage], results: Sequence[Storage]) -> None:
    """Bail out where results that may alias other arrays differ from them. UnsupportedError for possible views."""
    own = {*arguments, *results}
    for storage in results:
        for other in dict.fromkeys(alias for alias in storage.may_aliases if alias in own and alias is not storage):
            if tracer.differentiates or not storage.is_whole_alias(other):
                raise UnsupportedError("a result that may be a view or a copy")
            tracer.checks.append(are_equal(storage.node, other.node))
    returned = set(results)
    for storage in () if tracer.differentiates else arguments:
        if any(alias in returned and storage not in alias.may_aliases for alias in storage.may_aliases):
            raise UnsupportedError("a list of arguments, or of views of them, as a result")
