"""Schedulers decide when values move between DRAM and LM; the address planner sets addresses."""
