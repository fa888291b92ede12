"""The language server: diagnostics, manual pages, completion and definitions for editors."""
