"""Where the cycles of a compiled function go, from its report."""
