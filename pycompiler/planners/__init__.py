"""Planners: functions from MNGraph to MNGraph, each of which makes one kind of decision.

They decide the side (device or host) of a node, and the dtype, location, layout and time slices of
a value.
"""
