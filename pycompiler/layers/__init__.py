"""Operators on the device: one file per family, and the registry of all of them."""
