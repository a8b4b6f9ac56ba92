"""`reflexarc off`."""

from reflexarc.cli.switching import off as command

__all__ = ["command"]
