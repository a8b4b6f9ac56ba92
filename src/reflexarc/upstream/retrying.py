"""How many attempts may be made again: a share of all requests, so no outage makes a storm."""

_MILLIONTHS = 1_000_000


class RetryBudget:
    """Each request earns `share` of a retry; so many as `at_least` are there from the start, and
    no more than those are ever saved up. Over any run of requests, retries stay at or below
    `at_least + share * requests`. Without a clock: a budget that is spent is earned by requests,
    not by waiting."""

    def __init__(self, share: float = 0.2, at_least: int = 10) -> None:
        """Raises `ValueError` for a share outside [0, 1] or less than no retries."""
        if not 0 <= share <= 1 or at_least < 0:
            raise ValueError(f"a share of {share} and at least {at_least} retries are no budget")
        # Whole millionths, so that five times a fifth is one.
        self._earned = round(share * _MILLIONTHS)
        self._most = max(at_least, 1 if self._earned else 0) * _MILLIONTHS
        self._held = at_least * _MILLIONTHS

    def request(self) -> None:
        """A request came in: its first attempt, not one made again."""
        self._held = min(self._most, self._held + self._earned)

    def retry(self) -> bool:
        """Takes one retry. False: they are spent, give the client what there is."""
        if self._held < _MILLIONTHS:
            return False
        self._held -= _MILLIONTHS
        return True
