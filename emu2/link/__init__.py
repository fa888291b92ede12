"""The linker: expands the directives of ``._vsm`` files to plain assembly (``emu2 link``)."""

from emu2.link.faults import LinkError
from emu2.link.linker import Linked, link, link_files
from emu2.link.origins import origins

__all__ = ["LinkError", "Linked", "link", "link_files", "origins"]
