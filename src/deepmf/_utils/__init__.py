"""Shared helpers: threads, processes, seeds, warnings, atomic files, safe archives."""
