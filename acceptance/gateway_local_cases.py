"""What is asked of the embedded engine: requests with the right tool, and schemas of many kinds.

The engine's way of choosing, its frames and their words were settled on other tools and other
requests.
"""

from typing import Any

Tool = dict[str, Any]
Choice = tuple[list[Tool], str, str]
"""The tools, what the user says, the name of the right tool."""


def tool(tool_name: str, description: str, /, **properties: Any) -> Tool:
    """Every property is required. A string stands for a type."""
    schemas = {
        name: {"type": schema} if isinstance(schema, str) else schema
        for name, schema in properties.items()
    }
    parameters = {"type": "object", "properties": schemas, "required": list(schemas)}
    function = {"name": tool_name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


_BANK = [
    tool("get_balance", "Show how much money is in an account", account="string"),
    tool("transfer_money", "Send money from one account to another", to="string", amount="number"),
    tool("block_card", "Block a lost or stolen card", card="string"),
    tool("list_transactions", "List the latest payments of an account", account="string"),
    tool("apply_for_loan", "Start a loan application", amount="number"),
]
_STAFF = [
    tool("request_leave", "Ask for days of vacation", start="string", days="integer"),
    tool("get_payslip", "Fetch the payslip of a month", month="string"),
    tool("report_sick", "Report that an employee is ill", date="string"),
    tool("find_colleague", "Look up a colleague's contact details", name="string"),
]
_DOCTOR = [
    tool("book_appointment", "Make an appointment with a doctor", doctor="string", date="string"),
    tool("renew_prescription", "Renew a prescription for a medicine", medicine="string"),
    tool("get_lab_results", "Get the results of a blood test", patient="string"),
]
_BENCH = [
    tool("measure_ph", "Measure the pH of a sample", sample="string"),
    tool("heat_plate", "Heat the plate to a temperature", celsius="number"),
    tool("dispense_liquid", "Dispense a volume of liquid into a well", well="string", ul="number"),
    tool("centrifuge", "Spin the samples", rpm="integer", minutes="integer"),
    tool("take_picture", "Take a picture of the plate", plate="string"),
]
_SCREEN = [
    tool("find_movie", "Search for a movie", query="string"),
    tool("set_volume", "Set the loudness", level="integer"),
    tool("pause", "Pause what is playing", device="string"),
    tool("subtitles", "Switch subtitles on or off", language="string"),
    tool("record_show", "Record a TV show", title="string"),
    tool("next_episode", "Go to the next episode", series="string"),
]

CHOICES: list[Choice] = [
    (_BANK, "How much do I have left on my savings account?", "get_balance"),
    (_BANK, "Somebody stole my Visa card", "block_card"),
    (_BANK, "Send 40 dollars to Maria", "transfer_money"),
    (_BANK, "What did I spend money on last week?", "list_transactions"),
    (_BANK, "I want to borrow 5000 for a car", "apply_for_loan"),
    (_STAFF, "I'd like to take next week off", "request_leave"),
    (_STAFF, "I have a fever and cannot come to work today", "report_sick"),
    (_STAFF, "What is Julia's phone number?", "find_colleague"),
    (_STAFF, "I need my salary statement for March", "get_payslip"),
    (_DOCTOR, "I need more of my asthma medicine", "renew_prescription"),
    (_DOCTOR, "Can Dr. Lee see me on Monday?", "book_appointment"),
    (_DOCTOR, "Are my blood test values back?", "get_lab_results"),
    (_BENCH, "How acidic is sample B?", "measure_ph"),
    (_BENCH, "Put 50 microliters of buffer into A1", "dispense_liquid"),
    (_BENCH, "Spin them at 3000 rpm for 5 minutes", "centrifuge"),
    (_BENCH, "Warm it up to 37 degrees", "heat_plate"),
    (_SCREEN, "It's too loud", "set_volume"),
    (_SCREEN, "Show me comedies with Jim Carrey", "find_movie"),
    (_SCREEN, "Stop playing for a moment", "pause"),
    (_SCREEN, "I want German subtitles", "subtitles"),
]

_text = {"type": "string"}

SCHEMAS: list[tuple[str, dict[str, Any]]] = [
    ("text", _text),
    ("a whole number within bounds", {"type": "integer", "minimum": 1, "maximum": 9}),
    ("one of a few values", {"enum": ["red", "green", 3, None]}),
    ("text or null", {"anyOf": [_text, {"type": "null"}]}),
    ("a list of text", {"type": "array", "items": _text, "minItems": 1, "maxItems": 3}),
    ("a date", {"type": "string", "format": "date"}),
    ("a pattern", {"type": "string", "pattern": "^[A-Z]{2}[0-9]{4}$"}),
    (
        "an object within",
        {
            "type": "object",
            "properties": {"street": _text, "floor": {"type": "integer"}},
            "required": ["street"],
            "additionalProperties": False,
        },
    ),
    (
        "a definition",
        {"$ref": "#/$defs/amount"},
    ),
    ("anything", {}),
]
"""Of a property named `value`; `DEFINITIONS` stand beside it."""

DEFINITIONS: dict[str, Any] = {
    "amount": {
        "type": "object",
        "properties": {"cents": {"type": "integer", "minimum": 0}, "currency": {"const": "EUR"}},
        "required": ["cents", "currency"],
    }
}
