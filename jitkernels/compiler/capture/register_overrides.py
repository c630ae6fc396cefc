"""Fill the override registry: import the modules that implement operations of traced arrays."""

from jitkernels.compiler.capture import strided_views  # noqa: F401  # registers functions
from jitkernels.compiler.capture.callee_monitor import internal_unless_user_code
from jitkernels.compiler.capture.control_flow import builtin_folds, list_as_array  # noqa: F401  # register functions
from jitkernels.compiler.capture.control_flow.tagged_union import unwrapping
from jitkernels.compiler.capture.dynamic import (  # noqa: F401  # likewise
    compress,
    counting,
    dynamic_functions,
    dynamic_norms,
    dynamic_order_statistics,
    dynamic_reductions,
    dynamic_statistics,
    segment_reductions,
    unique,
)
from jitkernels.compiler.capture.linear_algebra import linear_systems, matmul_einsum  # noqa: F401  # likewise
from jitkernels.compiler.capture.native import native_calls  # noqa: F401  # likewise
from jitkernels.compiler.capture.numpy import (  # noqa: F401  # each registers its operations
    array_function,
    concatenate,
    creation,
    decompositions,
    indexing,
    mean_var,
    missing_ufuncs,
    order_statistics,
    rearrange,
    reductions,
    select_clip_predicates,
    shape_ops,
    traced_fourier,
    ufuncs,
    vectorized_function,
)
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.python_numbers import (  # noqa: F401  # likewise
    cmath_functions,
    math_functions,
    python_complex_ops,
    python_float_ops,
    scalar_functions,
)
from jitkernels.compiler.capture.pytree import attribute_lookups, copy_protocol  # noqa: F401  # likewise
from jitkernels.compiler.capture.universal import traced_ufunc  # noqa: F401  # likewise

for _name in ("operate", "ufunc", "function", "getitem", "setitem", "ints", "lists"):
    SERVICES[_name] = unwrapping(SERVICES[_name])
for _name in ("operate", "ufunc", "function", "getitem", "setitem", "ints", "lists", "sign", "truth"):
    SERVICES[_name] = internal_unless_user_code(SERVICES[_name])
for _function in [*CALLED]:
    CALLED[_function] = unwrapping(CALLED[_function])
