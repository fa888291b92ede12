"""Scalar functions as programs of the chip's own instructions, one file per family."""
