"""System 1: what was learned for one agent. Pure: context in, decision out."""

from reflexarc.reflex.card import Card as Card
from reflexarc.reflex.card import Certificate as Certificate
from reflexarc.reflex.card import ToolRow as ToolRow
from reflexarc.reflex.context import Context as Context
from reflexarc.reflex.decision import Decision as Decision
from reflexarc.reflex.decision import Guarantee as Guarantee
from reflexarc.reflex.decision import ProposedCall as ProposedCall
from reflexarc.reflex.decision import Source as Source
from reflexarc.reflex.effects import guess_effect as guess_effect
from reflexarc.reflex.evaluation import Evaluation as Evaluation
from reflexarc.reflex.evaluation import Outcome as Outcome
from reflexarc.reflex.evaluation import evaluate as evaluate
from reflexarc.reflex.evaluation import outcomes as outcomes
from reflexarc.reflex.evaluation import summarise as summarise
from reflexarc.reflex.integrity import ResultsFit as ResultsFit
from reflexarc.reflex.integrity import results_fit as results_fit
from reflexarc.reflex.learning import learn as learn
from reflexarc.reflex.reflex import Reflex as Reflex
from reflexarc.reflex.repeat import Repeats as Repeats
from reflexarc.reflex.repeat import repeats as repeats
