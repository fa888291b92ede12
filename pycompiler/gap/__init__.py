"""What stands between the bound of a model and the cycles of its program; the command ``gap``."""
