"""Measures the emulator, and compares it with the host's limits and with the same steps in numpy.

`kernels` lists the measured kernels and their targets, `arithmetic` and `baselines` are the steps
in numpy, `measure` takes the times, `command` is `emu2 bench`.
"""
