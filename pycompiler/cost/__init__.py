"""How long something takes on the machine: the only room with formulas of cycles."""
