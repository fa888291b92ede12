"""The debugger's front ends: a command language, a terminal, the Debug Adapter Protocol.

The run itself is `emu2.Debugger`. `session.py` joins it with a source and its notes, `commands.py`
is the command language, `terminal.py` the terminal (only it imports Textual), `dap*.py` serve
editors.
"""
