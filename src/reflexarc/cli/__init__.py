"""The command line: one module per command, imported when its command runs.

Exit status: 0 done; 1 it could not be done; 2 wrong usage or configuration; 3 done, but some lines
of the input were bad and left out; 130 interrupted.
"""

from importlib import import_module
from typing import Any

import click

from reflexarc import __version__
from reflexarc.steps.errors import ConfigError, ReflexarcError

BAD_LINES = 3
INTERRUPTED = 130

COMMANDS: dict[str, tuple[str, str]] = {
    "try": ("try_", "What the work in logs wastes; for sessions, what System 1 would do."),
    "split": ("split", "Split sessions into a part to learn from and a part to be judged on."),
    "learn": ("learn", "Learn a reflex from sessions."),
    "eval": ("eval", "Judge a reflex on sessions it has not learned from."),
    "explain": ("explain", "Why System 1 decided as it did at one step, and what would change it."),
    "stream": ("stream", "A cold start: learn from the past alone, be judged on what comes next."),
    "serve": ("serve", "Put System 1 in front of an LLM: the gateway."),
    "config": ("config", "Check a gateway's configuration, or show what it comes to."),
    "report": (
        "report",
        "What System 1 would have done beside what System 2 did: the shadow report.",
    ),
    "doctor": ("doctor", "Is everything there that a gateway needs, and what to do where not."),
    "off": ("off", "Stop System 1 from acting, at once: everywhere, one tool, or one reflex."),
    "on": ("on", "Take back what off did."),
    "replay-test": ("replay_test", "May System 1 act between the turns of a model that thinks?"),
    "keys": ("keys", "Virtual keys: who may ask for what, for how much; what was spent."),
    "store": ("store", "What gateways recorded: how much there is, taking it out, removing it."),
    "audit": ("audit", "The audit trail: whether it is whole, and what it says."),
    "reflex": ("reflex_", "What a reflex holds and what it may do; promote, demote, roll back."),
    "relearn": ("relearn", "Learn a reflex again from what its gateways recorded."),
    "queue": ("queue", "Batch requests that wait: list them, look at one, cancel one."),
    "engines": ("engines", "Plan an inference engine on GPUs: what fits, and how to start it."),
    "sim": ("sim", "An OpenAI-compatible simulated System 2 with the latency of a real one."),
    "demo": ("demo", "A returns desk on four arms: what System 1 saves, and where it errs."),
}
"""Name of each command: its module here, and its one line of help (so that `--help` imports none
of them)."""


class FailureError(click.ClickException):
    """An error of ours as one line on stderr."""


class WrongUsageError(click.ClickException):
    """The same for configuration that cannot be meant."""

    exit_code = 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"reflexarc.cli.{COMMANDS[cmd_name][0]}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ReflexarcError as error:
            wrong = isinstance(error, ConfigError)
            raise (WrongUsageError if wrong else FailureError)(str(error)) from error
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="reflexarc")
def main() -> None:
    """System 1 for LLM agents: answers the tool calls it has learned, under a certified error
    bound, and leaves the rest to the LLM."""
