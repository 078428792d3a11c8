"""The data side: every kind of X, its layout and its validation."""
