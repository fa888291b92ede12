"""A compiled function as one list of instructions, and how long each takes on the emulator."""
