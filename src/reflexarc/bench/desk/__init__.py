"""The returns desk: a queue of return requests over a real SQLite database, the demo's workload.

One task is one queue. `world` makes the database from a seed, `tools` acts on it, `system2` is the
scripted System 2, `agent` the loop between them, `outcome` judges the database's end state.
"""

from reflexarc.bench.desk.agent import TaskRun as TaskRun
from reflexarc.bench.desk.agent import run_task as run_task
from reflexarc.bench.desk.outcome import verify as verify
from reflexarc.bench.desk.schemas import TOOLS as TOOLS
from reflexarc.bench.desk.system2 import ReturnsDeskSystem2 as ReturnsDeskSystem2
from reflexarc.bench.desk.tools import Desk as Desk
from reflexarc.bench.desk.world import DeskTask as DeskTask
from reflexarc.bench.desk.world import build_database as build_database
from reflexarc.bench.desk.world import make_task as make_task
