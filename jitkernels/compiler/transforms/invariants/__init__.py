"""Loop-invariant code motion: what loops compute again in each iteration is computed once, in front of them."""
