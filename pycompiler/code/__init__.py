"""Lines of the machine whose addresses are relative to values, and loop nests of them."""
