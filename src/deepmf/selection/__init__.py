"""Choice of ranks and depth."""
