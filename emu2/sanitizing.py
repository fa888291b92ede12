"""The option `--sanitize` of the commands that run programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from emu2.console import Form, explained
from emu2.streams import tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    import emu2
    from emu2.errors import Finding

sanitize_option = click.option(
    "--sanitize",
    is_flag=True,
    help="Also look for undefined values, and results that depend on timing or on a format.",
)

_TIMING = "A07"
_JUDGED_AT_RUN = "A0703"


def show_findings(report: emu2.Report, form: Form) -> None:
    """Print what a sanitized run has found to stderr."""
    if not report.findings:
        return
    if form == "json":
        tell(json.dumps(report.findings, indent=2))
    else:
        tell(explained(report.render_findings()))


def show_undefined(
    machine: emu2.Machine, regions: Iterable[tuple[str, int, int, int]], form: Form
) -> list[Finding]:
    """Print which words of regions have no defined value, and return the findings.

    A region is memory, group, first long word and number of long words.
    """
    all_found: list[Finding] = []
    for memory, group, addr, count in regions:
        all_found += machine.undefined(memory, group=group, addr=addr, count=count)
    for found in all_found:
        text = f"warning[{found['code']}]: {found['message']}\n  help: {found['help']}"
        tell(json.dumps(found) if form == "json" else text)
    return all_found


def is_clean(program: emu2.Program, findings: Iterable[Finding]) -> bool:
    """Return whether a sanitized run found nothing.

    The assembler's findings about timing count too. They hold whatever addresses a register gives,
    except those about MVs, which the run judges by the addresses that the MVs used.
    """
    codes = [warning["code"] for warning in program.warnings]
    timing = any(code.startswith(_TIMING) and code != _JUDGED_AT_RUN for code in codes)
    return not timing and not any(True for _ in findings)
