"""Load object files into the process: object cache, archives, ELF loader, MCJIT fallback."""
