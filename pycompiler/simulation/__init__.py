"""Node simulation: what every node costs under each setting that a scheduler may choose."""
