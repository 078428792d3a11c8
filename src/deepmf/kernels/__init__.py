"""Vector registers in code compiled by Numba: numbers side by side, and tiles of products.

Numba leaves it to the compiler to find loops that vector instructions can do; this says it.
"""
