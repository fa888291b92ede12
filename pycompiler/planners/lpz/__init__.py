"""The layout planner "lpz": it chooses the cheapest layouts that layers and neighbours propose."""
