"""Arrays whose lengths only the compiled code knows: slices at computed bounds, masked copies, trimmed results."""
