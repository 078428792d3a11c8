"""Speed and memory beside peers and the machine's limits: ``python -m benchmarks.run``."""
