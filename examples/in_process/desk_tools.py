"""The order desk's tools, plain functions, shared by both agents."""

import json
import random

PROMPT = "You help with orders."


def find_customer(customer: str) -> str:
    """Find a customer by number."""
    order = f"W{random.Random(customer).randrange(10**7):07d}"
    return json.dumps({"customer": customer, "order_id": order})


def get_order(order_id: str) -> str:
    """Read an order."""
    return json.dumps({"order_id": order_id, "status": "delivered"})


def refund_order(order_id: str) -> str:
    """Refund an order."""
    return json.dumps({"refunded": order_id})
