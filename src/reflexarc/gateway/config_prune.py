"""`[route.prune]`: what may be left out of a route's prompts, and when."""

import msgspec

from reflexarc.context.horizon import PRIOR_TURNS
from reflexarc.context.pruning import Rules
from reflexarc.context.pruning_found import ImageBudget


class PruneConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing of the last `keep_turns` turns of the model's goes, nothing of fewer tokens than
    `least_tokens`; a step that breaks the cache saves `least_step_tokens` at least, and `margin`
    (a share) more than it costs. The newest images stay within `image_tokens` and `image_bytes`.
    `expected_turns` that a session has left, as long as few were seen."""

    keep_turns: int = 3
    least_tokens: int = 64
    least_step_tokens: int = 512
    margin: float = 0.25
    image_tokens: int = 6_000
    image_bytes: int = 4 * 1024 * 1024
    expected_turns: float = PRIOR_TURNS

    def rules(self) -> Rules:
        return Rules(
            self.keep_turns,
            self.least_tokens,
            self.least_step_tokens,
            self.margin,
            ImageBudget(self.image_tokens, self.image_bytes),
        )
