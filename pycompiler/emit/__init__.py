"""Fragments to assembly text: relocation, concatenation, hazards and waits."""
