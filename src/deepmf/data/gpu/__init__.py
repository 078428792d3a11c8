"""PyTorch tensors and CUDA devices."""
