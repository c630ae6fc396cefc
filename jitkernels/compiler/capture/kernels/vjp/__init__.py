"""Vector-Jacobian products of kernels, a module for each family; `vjp_registry` imports them when one is wanted."""
