"""Settings, dtypes, target facts, atomic files and locks: what every layer uses and what depends on no kernel."""
