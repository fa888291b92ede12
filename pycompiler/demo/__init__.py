"""``make demo``: what compiles, runs and agrees with PyTorch, on one screen."""
