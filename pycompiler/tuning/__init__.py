"""The search for the options with which a model takes the fewest cycles."""
