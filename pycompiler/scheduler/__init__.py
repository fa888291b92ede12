"""Schedulers place moves between DRAM and LM; the address planner gives everything its place."""
