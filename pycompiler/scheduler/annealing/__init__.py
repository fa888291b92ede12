"""The scheduler ``auto_recompute_sa``: a search over order, room, banks and recomputation."""
