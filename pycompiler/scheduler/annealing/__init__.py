"""The scheduler ``auto_recompute_sa``: it searches order, spills, banks and recomputation."""
