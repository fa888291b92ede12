"""Schedulers place the moves between DRAM and LM; the address planner sets all addresses."""
