"""reflexarc: System 1 for LLM agents. The public names live in the sub-packages."""

__version__ = "0.1.0"
