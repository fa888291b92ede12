"""Time slices: values that do not fit LM are cut into slices, which are computed in turn."""
