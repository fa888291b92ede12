"""Random damage to files that the compiler reads."""
