"""What tokens cost: a price for each kind of token, and its arithmetic in whole micro-dollars."""

from decimal import ROUND_HALF_UP, Context, Decimal

import msgspec

from reflexarc.wire.usage import Usage

# Exact for any count of tokens (16 digits) at any price that fits a configuration.
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP)


MAX_MICRO_USD = 2**53 - 1
"""Nine thousand million dollars. An upstream that tells of more tokens than that tells nonsense,
and databases, JSON and sums must still hold it."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars a million tokens, which is micro-dollars a token.

    What is not set costs as what it is a kind of: reads and writes of a cache as input, an hour's
    write as a write. A prompt of more than `long_from` tokens is charged, whole and with its
    answer, by `long`.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    long_from: int | None = None
    long: "Price | None" = None

    def __post_init__(self) -> None:
        if (self.long_from is None) != (self.long is None):
            raise ValueError("long_from and long are given together or not at all")
        if self.long is not None and self.long.long is not None:
            raise ValueError("long has no long of its own")
        for name in ("input", "output", "cache_read", "cache_write", "cache_write_1h"):
            value: Decimal | None = getattr(self, name)
            if value is not None and not (value.is_finite() and 0 <= value <= 1_000_000):
                raise ValueError(f"{name} must be from 0 to 1000000, not {value}")

    @property
    def of_read(self) -> Decimal:
        return self.input if self.cache_read is None else self.cache_read

    @property
    def of_write(self) -> Decimal:
        return self.input if self.cache_write is None else self.cache_write

    @property
    def of_hour_write(self) -> Decimal:
        return self.of_write if self.cache_write_1h is None else self.cache_write_1h

    def micro_usd(self, usage: Usage) -> int:
        """Each token counted once, rounded once, half up. Never negative: parts that are larger
        than their whole count as the whole. At most `MAX_MICRO_USD`."""
        whole = max(0, usage.input)
        if self.long is not None and self.long_from is not None and whole > self.long_from:
            return self.long.micro_usd(usage)
        read = min(max(0, usage.cache_read), whole)
        written = min(max(0, usage.cache_write), whole - read)
        hour = min(max(0, usage.cache_write_1h), written)
        total = Decimal(0)
        for tokens, price in (
            (whole - read - written, self.input),
            (read, self.of_read),
            (written - hour, self.of_write),
            (hour, self.of_hour_write),
            (max(0, usage.output), self.output),
        ):
            total = _EXACT.fma(Decimal(tokens), price, total)
        return min(MAX_MICRO_USD, int(total.to_integral_value(ROUND_HALF_UP, _EXACT)))

    def most_micro_usd(self, prompt_tokens: int, output_tokens: int) -> int:
        """The most that a prompt of so many tokens with an answer of at most so many can cost,
        whatever of it a cache holds."""
        price = self
        if self.long is not None and self.long_from is not None and prompt_tokens > self.long_from:
            price = self.long
        dearest = max(price.input, price.of_read, price.of_write, price.of_hour_write)
        return Price(dearest, price.output).micro_usd(Usage(prompt_tokens, output_tokens))

    def times(self, factor: Decimal) -> "Price":
        """All of it, so many times."""

        def one(value: Decimal | None) -> Decimal | None:
            return None if value is None else _EXACT.multiply(value, factor)

        return Price(
            _EXACT.multiply(self.input, factor), _EXACT.multiply(self.output, factor),
            one(self.cache_read), one(self.cache_write), one(self.cache_write_1h),
            self.long_from, None if self.long is None else self.long.times(factor),
        )  # fmt: skip
