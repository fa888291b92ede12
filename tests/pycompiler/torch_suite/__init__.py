"""PyTorch's operator database: what becomes of each operator on a device."""
