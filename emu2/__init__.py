"""Bit-exact emulator and assembler of the MN-Core 2 accelerator.

>>> import emu2
>>> spec = emu2.Spec.load("mini")
>>> machine = emu2.Machine(spec)
>>> report = machine.run(emu2.assemble('imm f"1.5" $lm0', spec))
>>> hex(machine.read("lm0", addr=0, count=1, group=0, l2b=0, l1b=0, mab=0, pe=0)[0])
'0x3fc000003fc00000'
"""

from emu2 import _built

_built.load()

from emu2._core import (
    Debugger,
    Device,
    IndexMap,
    Kernel,
    Machine,
    MemoryFiles,
    Program,
    Report,
    Spec,
    __version__,
    assemble,
    built_in_specs,
    pack,
    read_asm,
    to_text,
    unpack,
    what_if_specs,
    write_asm,
)
from emu2.errors import AssembleError, Diagnostic, Emu2Error, EmulatorError, RunError

__all__ = [
    "AssembleError",
    "Debugger",
    "Device",
    "Diagnostic",
    "Emu2Error",
    "EmulatorError",
    "IndexMap",
    "Kernel",
    "Machine",
    "MemoryFiles",
    "Program",
    "Report",
    "RunError",
    "Spec",
    "__version__",
    "assemble",
    "built_in_specs",
    "pack",
    "read_asm",
    "to_text",
    "unpack",
    "what_if_specs",
    "write_asm",
]


def load_ipython_extension(shell: object) -> None:
    """Add the cell magic `%%vsm` to IPython: `%load_ext emu2` calls this."""
    from emu2.notebook import register

    register(shell)
