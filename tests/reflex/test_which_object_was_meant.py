"""Of several objects the one meant is that which what was said distinguishes from the others."""

from reflexarc.provenance import Record
from reflexarc.provenance.words import said_words
from reflexarc.reflex.said import Said, Text, lines_meant

LAMPS = tuple(
    Record(f"lamp {colour} {power} watt in stock true")
    for colour, power in (("silver", "40"), ("silver", "60"), ("black", "40"))
)


def told(user: str = "", assistant: str = "") -> list[tuple[float, ...]]:
    words = Text(user)
    said = Said(words, Text(assistant), set(words.words), (words.words, Text(assistant).words))
    found = said.told(LAMPS)
    return [found[lamp] for lamp in LAMPS]


def test_what_all_have_in_common_tells_nothing() -> None:
    scores = told("a lamp in stock please")
    assert len({score[0] for score in scores}) == 1


def test_words_of_few_tell_most() -> None:
    by_user = [score[0] for score in told("I take the black lamp")]
    assert by_user.index(max(by_user)) == 2
    both = [score[2] for score in told(assistant="So it is the silver one of 60 watt in stock?")]
    assert both.index(max(both)) == 1


def test_a_line_chosen_by_number_is_what_is_meant() -> None:
    listed = "You have:\n1. **Silver**, 40 watt\n2. **Silver**, 60 watt\n3. Black, 40 watt\nWhich?"
    for answer, line in (("option 3 please", 2), ("the second one", 1), ("Number 1", 0)):
        scores = [score[0] for score in told(answer, listed)]
        assert scores.index(max(scores)) == line


def test_no_number_no_line() -> None:
    assert lines_meant("the one for 40 euros", "1. a lamp\n2. a bulb") == frozenset()
    assert lines_meant("option 7", "1. a lamp\n2. a bulb") == frozenset()


def test_a_plural_means_things_called_by_the_singular() -> None:
    items = (Record("desk lamp 40"), Record("watch battery 12"), Record("running shoes 9"))
    for said, meant in (("return both lamps", 0), ("the batteries too", 1), ("that shoe", 2)):
        text = Text(said)
        found = Said(text, Text(""), set(text.said), ()).told(items)
        scores = [found[item][0] for item in items]
        assert scores[meant] == max(scores) > 0.0, said
        assert scores.count(max(scores)) == 1


def test_words_that_only_look_like_plurals_stay() -> None:
    assert said_words("Glass bus gas boxes") == {"glass", "bus", "gas", "boxes", "box"}
