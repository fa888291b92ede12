"""The layout planner "lpz": the cheapest layouts of all that layers and neighbours propose."""
