"""Time slices: what does not fit LM is cut into slices that are worked on one after the other."""
