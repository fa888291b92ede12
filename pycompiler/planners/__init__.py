"""Planners: functions from MNGraph to MNGraph that decide side, dtype, location and layout."""
