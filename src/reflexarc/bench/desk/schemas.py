"""What the returns desk's tools are called, take and do: eight that read and six that write."""

from typing import Any, cast

REJECT_REASONS = ("outside_window", "final_sale")
_MAX_TEXT_CHARS = 600


def _tool(
    name: str, description: str, read_only: bool, **properties: dict[str, Any]
) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            },
        },
        "annotations": {"readOnlyHint": read_only},
    }


def _text(description: str) -> dict[str, Any]:
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": _MAX_TEXT_CHARS,
        "description": description,
    }


_QUEUE = _text("Queue, such as Q-0000A.")
_REQUEST = _text("Return request, such as RR-000000.")

TOOLS: tuple[dict[str, Any], ...] = (
    _tool("list_open_requests", "List the ids of a queue's open requests.", True, queue_id=_QUEUE),
    _tool("next_request", "Show the first open return request of a queue.", True, queue_id=_QUEUE),
    _tool(
        "get_order",
        "Show an order: customer, payment, shipment and lines.",
        True,
        order_id=_text("Order, such as W0000000."),
    ),
    _tool(
        "get_customer",
        "Show a customer: tier and number of recent returns.",
        True,
        customer_id=_text("Customer, such as CU-00000."),
    ),
    _tool(
        "get_product",
        "Show a product: category, and whether it was a final sale.",
        True,
        sku=_text("Article number, such as EL-00000."),
    ),
    _tool(
        "track_shipment",
        "Show a shipment: status, day of delivery, condition noted by the carrier.",
        True,
        shipment_id=_text("Shipment, such as 1Z000000000000."),
    ),
    _tool(
        "get_return_policy",
        "Show a category's return window in days and its restocking fee in percent.",
        True,
        category=_text("Product category, such as electronics."),
    ),
    _tool(
        "get_payment",
        "Show a payment: method, amount, what was refunded so far.",
        True,
        payment_id=_text("Payment, such as pay_0000000000."),
    ),
    _tool(
        "approve_return",
        "Approve an open request: the customer is sent a return label.",
        False,
        request_id=_REQUEST,
    ),
    _tool(
        "reject_return",
        "Reject an open request; the customer is told the reason.",
        False,
        request_id=_REQUEST,
        reason={"type": "string", "enum": list(REJECT_REASONS)},
    ),
    _tool(
        "issue_refund",
        "Refund an amount in dollars to the payment of the request's order. The request must be "
        "approved, or its parcel lost.",
        False,
        request_id=_REQUEST,
        payment_id=_text("Payment to refund to, such as pay_0000000000."),
        amount={"type": "number", "exclusiveMinimum": 0, "description": "Dollars and cents."},
    ),
    _tool(
        "flag_for_review",
        "Hand an open request to a person.",
        False,
        request_id=_REQUEST,
        reason=_text("Why a person should decide."),
    ),
    _tool(
        "ask_customer",
        "Send the customer a question; the request waits for the answer.",
        False,
        request_id=_REQUEST,
        question=_text("The question, in full sentences."),
    ),
    _tool(
        "add_note",
        "Add an internal note to a request.",
        False,
        request_id=_REQUEST,
        text=_text("The note."),
    ),
)

READ_TOOLS = frozenset(
    cast("str", tool["function"]["name"]) for tool in TOOLS if tool["annotations"]["readOnlyHint"]
)
