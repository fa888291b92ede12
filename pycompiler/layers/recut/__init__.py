"""MNCoreRecut: rows of values in DRAM, cut and joined elsewhere; no value is in local memory."""
