"""Answers of deepmf and of other methods, scored against truth and classes."""
