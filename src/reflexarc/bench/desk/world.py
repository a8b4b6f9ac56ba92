"""Makes a task of the returns desk from a seed: its database, its queue, its opening message.

The same seed gives the same rows. Identifiers are drawn anew for every task, so that nothing
learned from one task can be a constant of another.
"""

import random
import sqlite3
import string
from datetime import date, timedelta
from importlib import resources
from pathlib import Path

import msgspec

MODEL = "returns-desk-system2"
REQUESTS_PER_QUEUE = 3
REVIEW_OVER_CENTS = 50_000
"""Refunds above this amount go to a person (handbook, section 6)."""
FREQUENT_RETURNS = 10
"""So many returns in twelve months, and a person decides (handbook, section 6)."""

_DAY_ZERO = date(2026, 3, 2)
_CATEGORIES = {  # category: (sku prefix, windows in days, restocking fees in percent, titles)
    "apparel": (
        "AP",
        (30, 45),
        (0,),
        ("Rain jacket", "Wool sweater", "Denim shirt", "Trail socks"),
    ),
    "electronics": (
        "EL",
        (14, 21),
        (15, 10),
        ("USB-C dock", "Headphones", "Smart plug", "E-reader"),
    ),
    "home": ("HO", (30,), (10, 5), ("Desk lamp", "Linen set", "Cast-iron pan", "Wall clock")),
    "beauty": ("BE", (14,), (0,), ("Face cream", "Hair dryer", "Gift set", "Sun lotion")),
    "toys": ("TO", (45, 60), (0,), ("Wooden train", "Puzzle 1000", "Kite", "Building set")),
    "books": ("BO", (21,), (5, 0), ("Atlas", "Cookbook", "Field guide", "Picture book")),
}
_KINDS = {  # what a request really is, and how often
    "changed_mind": 34,
    "wrong_size": 12,
    "late": 13,
    "final_sale": 8,
    "damaged": 10,
    "lost": 6,
    "damage_disputed": 5,
    "frequent": 3,
    "high_value": 3,
    "wrong_item": 3,
    "vague": 3,
}
_REASON = {
    "late": ("changed_mind", "wrong_size"),
    "final_sale": ("changed_mind", "wrong_size"),
    "damage_disputed": ("damaged",),
    "frequent": ("changed_mind",),
    "high_value": ("changed_mind",),
    "lost": ("not_received",),
    "wrong_item": ("other",),
    "vague": ("other",),
}
_COMMENTS = {
    "wrong_item": (
        "You sent me the wrong article: the label says one thing, the box holds another.",
        "The parcel had a different colour in it than the one I ordered, please take it back.",
        "I got someone else's item. Mine was never in the box.",
    ),
    "vague": (
        "Not really what I hoped for, can we do something?",
        "There is a problem with it. Please get back to me.",
        "It is complicated, call me maybe. I just want this sorted.",
    ),
    "damaged": (
        "It arrived broken.",
        "The corner was crushed when I opened the parcel.",
        "Cracked on arrival, box was dented too.",
    ),
    "changed_mind": ("", "", "", "I do not need it any more.", "Found a better one."),
    "wrong_size": ("", "Too small.", "Too large.", "Does not fit."),
    "not_received": ("Where is my parcel?", "It never came.", ""),
}
_OPENINGS = (
    "Please work through return queue {queue}. There are {n} open requests for today's shift.",
    "Queue {queue} is yours for this shift ({n} requests). Follow the handbook and finish all.",
    "Morning! Take queue {queue}, {n} return requests. Send me a short summary at the end.",
    "Handle the {n} open returns in {queue}, please; report back when the queue is empty.",
)
_NAMES = ("Ada", "Bela", "Chidi", "Dana", "Emre", "Fia", "Goran", "Hana", "Ivo", "Juno", "Kemal")
_SURNAMES = ("Abara", "Brandt", "Costa", "Duval", "Eriksen", "Farkas", "Greco", "Hassan", "Ito")


class DeskTask(msgspec.Struct, frozen=True):
    """One queue to work through. `kinds` maps request ids to what the request really is: known
    to the verifier, shown to nobody else."""

    seed: str
    queue_id: str
    opening: str
    kinds: dict[str, str]

    @property
    def id(self) -> str:
        return f"returns-desk-{self.seed}"


def make_task(seed: str) -> DeskTask:
    """The task of a seed. Nothing is written."""
    return _World(seed).task


def build_database(task: DeskTask, path: Path | str = ":memory:") -> sqlite3.Connection:
    """Create the task's database at `path`, which must not hold one yet; open in autocommit."""
    world = _World(task.seed)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _fill(connection, world)
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(connection: sqlite3.Connection, world: "_World") -> None:
    # A database per task run, thrown away after it is judged: no need to survive a power cut.
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    schema = resources.files("reflexarc.bench.desk").joinpath("schema.sql").read_text("utf-8")
    connection.executescript(schema)
    connection.execute("BEGIN")
    for table, rows in world.rows.items():
        marks = ",".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    connection.execute("COMMIT")


Row = tuple[str | int | None, ...]


class _World:
    """All rows of one task, drawn from its seed alone."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(f"returns desk {seed}")
        self._used: set[str] = set()
        self.rows: dict[str, list[Row]] = {
            table: []
            for table in (
                "customers",
                "products",
                "return_policies",
                "orders",
                "order_lines",
                "shipments",
                "payments",
                "return_requests",
            )
        }
        draw = self._random
        self._windows: dict[str, int] = {}
        for category, (_, windows, fees, _) in _CATEGORIES.items():
            self._windows[category] = draw.choice(windows)
            row = (category, self._windows[category], draw.choice(fees))
            self.rows["return_policies"].append(row)
        queue_id = f"Q-{self._new('dddd')}{draw.choice('ABCDEFGH')}"
        kinds: dict[str, str] = {}
        for position in range(REQUESTS_PER_QUEUE):
            kind = draw.choices(list(_KINDS), list(_KINDS.values()))[0]
            kinds[self._request(queue_id, position, kind)] = kind
        for _ in range(6):  # other people's orders and requests: nobody may touch them
            self._order("changed_mind", 1)
        self._request(f"Q-{self._new('dddd')}Z", 0, "changed_mind")
        opening = draw.choice(_OPENINGS).format(queue=queue_id, n=REQUESTS_PER_QUEUE)
        self.task = DeskTask(seed, queue_id, opening, kinds)

    def _request(self, queue_id: str, position: int, kind: str) -> str:
        draw = self._random
        reason = draw.choice(_REASON.get(kind, (kind,)))
        quantity = draw.choice((1, 1, 1, 2, 3))
        order_id, sku, created_on = self._order(kind, quantity)
        request_id = f"RR-{self._new('dddddd')}"
        comment = draw.choice(_COMMENTS.get(kind) or _COMMENTS[reason])
        row = (request_id, queue_id, position, order_id, sku, quantity, reason, comment)
        self.rows["return_requests"].append((*row, created_on.isoformat(), "open", 0, None))
        return request_id

    def _order(self, kind: str, quantity: int) -> tuple[str, str, date]:
        """An order whose first line is what is returned; (order id, sku, day of the request)."""
        draw = self._random
        category = "apparel" if kind == "wrong_size" else draw.choice(list(_CATEGORIES))
        placed_on = _DAY_ZERO + timedelta(days=draw.randrange(200))
        days_to_deliver = draw.randint(2, 6)
        delivered_on = placed_on + timedelta(days=days_to_deliver)
        window = self._windows[category]
        waited = window + draw.randint(3, 60) if kind == "late" else draw.randint(1, window - 2)
        created_on = delivered_on + timedelta(days=waited)

        limit = 40_000 // quantity
        cents = draw.randint(6, min(180, limit // 100)) * 100 + draw.choice((0, 49, 90, 95, 99))
        if kind == "high_value":  # above the limit whatever the fee
            cents = (REVIEW_OVER_CENTS * 2) // quantity + draw.randint(1, 300) * 100
        sku = self._product(category, cents, final_sale=kind == "final_sale")
        lines = [(sku, quantity, cents)]
        for _ in range(draw.choice((0, 0, 1, 2))):
            other = draw.choice(list(_CATEGORIES))
            other_cents = draw.randint(6, 90) * 100 + 95
            lines.append((self._product(other, other_cents, False), 1, other_cents))

        customer_id = f"CU-{self._new('ddddd')}"
        name, surname = draw.choice(_NAMES), draw.choice(_SURNAMES)
        tier = draw.choices(("standard", "plus", "vip"), (7, 2, 1))[0]
        returns = draw.randint(FREQUENT_RETURNS, 19) if kind == "frequent" else draw.randint(0, 6)
        email = f"{name}.{surname}{self._new('dd')}@example.com".lower()
        since = date(2017 + draw.randrange(8), draw.randint(1, 12), draw.randint(1, 28))
        row = (customer_id, f"{name} {surname}", email, tier, since.isoformat(), returns)
        self.rows["customers"].append(row)

        order_id = f"W{self._new('ddddddd')}"
        shipping = draw.choice((0, 495))
        lost = kind == "lost"
        status = "shipped" if lost else "delivered"
        self.rows["orders"].append((order_id, customer_id, placed_on.isoformat(), status, shipping))
        self.rows["order_lines"].extend((order_id, *line) for line in lines)
        condition = "unknown" if lost else "damaged" if kind == "damaged" else "intact"
        self.rows["shipments"].append(
            (
                f"1Z{self._new('xxxxxxxxxxxx')}",
                order_id,
                draw.choice(("Northline", "Parcelway", "Kurier24")),
                "lost" if lost else "delivered",
                (placed_on + timedelta(days=1)).isoformat(),
                None if lost else delivered_on.isoformat(),
                condition,
            )
        )
        total = shipping + sum(n * price for _, n, price in lines)
        method = draw.choice(("card", "card", "paypal", "gift_card"))
        self.rows["payments"].append((f"pay_{self._new('xxxxxxxxxx')}", order_id, method, total, 0))
        return order_id, sku, created_on

    def _product(self, category: str, cents: int, final_sale: bool) -> str:
        prefix, _, _, titles = _CATEGORIES[category]
        sku = f"{prefix}-{self._new('ddddd')}"
        title = self._random.choice(titles)
        stock = self._random.randrange(80)
        self.rows["products"].append((sku, title, category, cents, int(final_sale), stock))
        return sku

    def _new(self, form: str) -> str:
        """A token not used before in this task: `d` a digit, `x` a digit or capital letter."""
        signs = {"d": string.digits, "x": string.digits + string.ascii_uppercase}
        while True:
            token = "".join(self._random.choice(signs[sign]) for sign in form)
            if token not in self._used:
                self._used.add(token)
                return token
