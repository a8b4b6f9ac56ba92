"""Fields of rows: of which kind one is, and the first of several that holds something, for names
differ from version to version."""

from reflexarc.traces.loose import Table, amount, moment, text


def first_text(fields: Table, *names: str) -> str:
    """ "" where none does."""
    return next((found for name in names if (found := text(fields.get(name)))), "")


def first_amount(fields: Table, *names: str) -> float | None:
    return next((found for name in names if (found := amount(fields.get(name))) is not None), None)


def first_moment(fields: Table, *names: str) -> float | None:
    """In Unix seconds."""
    return next((found for name in names if (found := moment(fields.get(name))) is not None), None)


def is_table(value: object) -> bool:
    return isinstance(value, dict)


def is_list(value: object) -> bool:
    return isinstance(value, list)
