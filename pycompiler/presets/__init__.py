"""Presets: sets of options with a name, one JSON file each."""
