"""``python -m pycompiler.mlsdk SCRIPT [ARG...]``."""

import sys

from emu2.streams import leave, open_closed_streams

from ..console import report_problem
from ..errors import error
from .script import run_script

USAGE = "python -m pycompiler.mlsdk SCRIPT [ARG...]"


def main() -> int:
    """Run the script named on the command line and return its exit code."""
    # As in Python, what a script prints for a closed stream is dropped.
    open_closed_streams(drop_output=True)
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print(f"usage: {USAGE}\n\nRuns a script written for MLSDK; `import mlsdk` gives this one.")
        return 0
    if not arguments or arguments[0].startswith("-"):
        problem = f"unknown option `{arguments[0]}`" if arguments else "no script given"
        return report_problem(error("P0007", problem=problem, usage=USAGE))
    return run_script(arguments[0], arguments[1:])


if __name__ == "__main__":
    leave(main())
