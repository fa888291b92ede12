"""How fast the emulator is, beside what bounds it and beside the same steps in numpy.

`kernels` says what is measured and what is asked for, `arithmetic` and `baselines` are the steps in
numpy, `measure` takes the times, `command` is `emu2 bench`.
"""
