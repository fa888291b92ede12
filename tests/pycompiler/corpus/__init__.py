"""The corpus: named programs whose text, dumps and cycles are recorded."""
