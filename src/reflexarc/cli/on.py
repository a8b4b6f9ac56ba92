"""`reflexarc on`: the other way round; see `off`."""

from reflexarc.cli.off import on as command

__all__ = ["command"]
