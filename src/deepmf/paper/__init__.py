"""The paper's experiments: run them again, beside the paper's numbers."""
