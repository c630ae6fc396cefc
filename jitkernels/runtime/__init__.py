"""From object files to addresses that Python calls: loader, threads, workspaces, floating-point status."""
