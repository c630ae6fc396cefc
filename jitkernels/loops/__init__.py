"""What implementations are made from: tiles, loops around them, and how their work is cut."""
