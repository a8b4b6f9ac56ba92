"""Where values come from: the values a conversation holds, by source slot.

A *slot* names a kind of place a value can stand in (`out:get_order:.items[*].item_id`,
`usr:a9`, `prev:order_id`); it is the same in every session of an agent, so that what is
learned about slots carries over to new values.
"""

from reflexarc.provenance.entries import Entry as Entry
from reflexarc.provenance.entries import Origin as Origin
from reflexarc.provenance.entries import Record as Record
from reflexarc.provenance.entries import SourceKind as SourceKind
from reflexarc.provenance.outputs import OutputValues as OutputValues
from reflexarc.provenance.outputs import output_entries as output_entries
from reflexarc.provenance.parts import part_entries as part_entries
from reflexarc.provenance.said import now_entries as now_entries
from reflexarc.provenance.said import said_entries as said_entries
from reflexarc.provenance.spans import assistant_entries as assistant_entries
from reflexarc.provenance.spans import system_entries as system_entries
from reflexarc.provenance.spans import user_entries as user_entries
from reflexarc.provenance.times import told_by_prompt as told_by_prompt
from reflexarc.provenance.times import told_now as told_now
