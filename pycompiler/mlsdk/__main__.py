"""``python -m pycompiler.mlsdk SCRIPT [ARG...]``, and commands that prepare scripts."""

import sys
from collections.abc import Sequence
from pathlib import Path

from emu2.streams import leave, open_closed_streams

from ..console import report_problem
from ..errors import PycompilerError, error
from .check import check_scripts
from .install import install, site_packages, uninstall, write_tree
from .script import run_script

USAGE = (
    "python -m pycompiler.mlsdk SCRIPT [ARG...], or check SCRIPT..., "
    "or install|uninstall|tree [--target FOLDER]"
)
HELP = f"""usage: {USAGE}

SCRIPT     runs a script written for MLSDK; `import mlsdk` gives this one
check      says which calls of scripts this MLSDK does not have; the scripts do not run
install    writes the packages `mlsdk` and `fx2onnx` into the environment, or into FOLDER, so
           that plain Python, notebooks and editors find them
uninstall  removes them
tree       writes what shell runners of examples look for into FOLDER, by default `codegen`:
           `build/codegen_pythonpath.sh`, `MLSDK/examples/exec_with_env.sh`, `gpfn3-smi`
"""


def main() -> int:
    """Do what the command line says and return the exit code."""
    # As in Python, what a script prints for a closed stream is dropped.
    open_closed_streams(drop_output=True)
    first, *rest = sys.argv[1:] or [""]
    try:
        if first in ("-h", "--help"):
            print(HELP, end="")
            return 0
        if not first or first.startswith("-"):
            raise _usage(f"unknown option `{first}`" if first else "no script given")
        if first in ("install", "uninstall", "tree"):
            return _packages(first, rest)
        if first == "check":
            return check_scripts(rest) if rest else report_problem(_usage("no script given"))
    except PycompilerError as problem:
        return report_problem(problem)
    return run_script(first, rest)


def _packages(command: str, arguments: Sequence[str]) -> int:
    """Write or remove the packages."""
    if arguments and (len(arguments) != 2 or arguments[0] != "--target"):
        raise _usage(f"unknown arguments `{' '.join(arguments)}`")
    target = Path(arguments[1]) if arguments else None
    work = {"install": install, "uninstall": uninstall, "tree": write_tree}[command]
    done = "removed" if command == "uninstall" else "wrote"
    for place in (places := work(target)):
        print(f"{done} {place}")
    if not places:
        print(f"nothing to remove in {target or site_packages()}")
    return 0


def _usage(problem: str) -> PycompilerError:
    return error("P0007", problem=problem, usage=USAGE)


if __name__ == "__main__":
    leave(main())
