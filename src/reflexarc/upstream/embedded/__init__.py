"""The embedded engine: a real llama.cpp server with a very small model, as a System 2 for trying.

Plumbing-grade: it streams, counts, caches and calls tools by their schemas as a real one does; what
it says is not to be relied on.
"""

from reflexarc.upstream.embedded.answer import COUNT_PATH as COUNT_PATH
from reflexarc.upstream.embedded.answer import ENGINE_HEADER as ENGINE_HEADER
from reflexarc.upstream.embedded.answer import ENGINE_LABEL as ENGINE_LABEL
from reflexarc.upstream.embedded.answer import MODEL as MODEL
from reflexarc.upstream.embedded.answer import read_count as read_count
from reflexarc.upstream.embedded.installed import model_path as model_path
from reflexarc.upstream.embedded.options import EngineOptions as EngineOptions
from reflexarc.upstream.embedded.owners import TENANT_HEADER as TENANT_HEADER
from reflexarc.upstream.embedded.owners import engine_headers as engine_headers
from reflexarc.upstream.embedded.saved import forget_states as forget_states
from reflexarc.upstream.embedded.supervisor import Embedded as Embedded
from reflexarc.upstream.embedded.supervisor import EmbeddedLimits as EmbeddedLimits
