"""What System 2 costs and who may spend it: prices, virtual keys, budgets, what was spent."""

from reflexarc.accounts.prices import Price, Prices

__all__ = ["Price", "Prices"]
