"""What users call: `jit`, derivatives, structured control flow."""
