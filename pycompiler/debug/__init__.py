"""The debugger on compiled models: notes on lines, and the places of elements of values."""
