"""Matrix products: who is what, where operands lie, and the code of two schedules."""
