"""The fusion compiler behind `jk.jit`: capture, IR, passes, schedule, code generation, dispatch."""
