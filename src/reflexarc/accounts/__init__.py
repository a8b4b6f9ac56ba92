"""What System 2 costs and who may spend it: prices, virtual keys, budgets, what was spent."""

from reflexarc.accounts.prices import USUAL_TIERS, Price, Prices

__all__ = ["USUAL_TIERS", "Price", "Prices"]
