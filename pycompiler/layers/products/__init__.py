"""Matrix products: the roles of axes, the layouts of operands, and the code of two schedules."""
