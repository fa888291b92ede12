"""Programs of high-performance computing, written anew from their published formulas.

``python -m benches.hpc`` compiles and runs them and prints a row for each; see :mod:`.__main__`.
Most programs are one text that runs with torch and with numpy: their first argument is the module
`torch` or `numpy`. So numpy is the reference of torch on the device.
"""
