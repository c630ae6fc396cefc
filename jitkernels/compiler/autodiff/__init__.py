"""Forward and reverse mode over the graph."""
