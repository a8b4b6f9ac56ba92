"""Recorded work: reading sessions, telling tasks apart, splitting them for learning and judging."""

from reflexarc.traces.lines import MAX_LINE_BYTES as MAX_LINE_BYTES
from reflexarc.traces.sessions import Recording as Recording
from reflexarc.traces.sessions import read_recording as read_recording
from reflexarc.traces.sessions import read_sessions as read_sessions
from reflexarc.traces.sessions import write_sessions as write_sessions
from reflexarc.traces.split import Split as Split
from reflexarc.traces.split import SplitBy as SplitBy
from reflexarc.traces.split import split_sessions as split_sessions
