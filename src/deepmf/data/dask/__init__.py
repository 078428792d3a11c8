"""Dask arrays: columns of X held by the workers of a cluster."""
