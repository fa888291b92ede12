"""MNCoreLayoutSwitch: one pass over one level of the machine, and how its code is made."""
