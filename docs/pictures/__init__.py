"""Pictures of the pages: ``make pictures`` makes all of them anew.

Drawings are made from the spec and from layouts; terminals and pages from what the commands print.
"""
