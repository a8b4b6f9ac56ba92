"""`python -m reflexarc` is the command line."""

from reflexarc.cli import main

main(prog_name="reflexarc")
