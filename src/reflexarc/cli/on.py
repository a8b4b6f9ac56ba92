"""`reflexarc on`."""

from reflexarc.cli.switching import on as command

__all__ = ["command"]
