"""Plans for inference engines on GPUs: a launch command from what the engines document.

Nothing here starts an engine or measures one. What a plan says of memory is reckoned, and labelled.
"""

from reflexarc.upstream.engines.documented import ENGINES as ENGINES
from reflexarc.upstream.engines.documented import Engine as Engine
from reflexarc.upstream.engines.documented import Flag as Flag
from reflexarc.upstream.engines.documented import load_engine as load_engine
from reflexarc.upstream.engines.gpus import Gpu as Gpu
from reflexarc.upstream.engines.gpus import load_gpus as load_gpus
from reflexarc.upstream.engines.models import Model as Model
from reflexarc.upstream.engines.models import load_models as load_models
from reflexarc.upstream.engines.planning import Plan as Plan
from reflexarc.upstream.engines.planning import Wish as Wish
from reflexarc.upstream.engines.planning import plan as plan
