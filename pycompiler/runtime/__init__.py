"""Runs apps: devices, DRAM images, functions, tensor proxies."""
