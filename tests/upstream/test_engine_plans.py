"""Plans for engines on GPUs: every flag is documented, what does not fit is said."""

import json
import tomllib
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.steps.errors import ConfigError
from reflexarc.upstream.engines import (
    ENGINES,
    Gpu,
    Model,
    Plan,
    Wish,
    load_engine,
    load_gpus,
    load_models,
    plan,
)
from reflexarc.upstream.engines.models import Given, parameters_b
from reflexarc.upstream.engines.sizing import memory

LLAMA = "meta-llama/Llama-3.3-70B-Instruct"


def documented(engine: str) -> dict[str, dict[str, Any]]:
    """The data file, read without the code that is tested."""
    text = resources.files("reflexarc.upstream.engines").joinpath(f"{engine}.toml").read_text()
    return {option["name"]: option for option in tomllib.loads(text)["option"]}


def legal(option: dict[str, Any], value: str | None) -> bool:
    takes = option["takes"]
    if takes == "flag":
        return value is None
    if value is None:
        return False
    if takes in ("int", "float"):
        number = int(value) if takes == "int" else float(value)
        return option.get("least", number) <= number <= option.get("most", number)
    if takes == "choice":
        return value in option["choices"]
    if takes == "json":
        members = {member["name"]: member for member in option["members"]}
        return all(
            name in members and legal(members[name], str(inner))
            for name, inner in json.loads(value).items()
        )
    return takes == "text" and bool(value)


def assert_documented(engine: str, made: Plan) -> None:
    options = documented(engine)
    for flag in made.flags:
        assert flag.option in options, flag
        assert legal(options[flag.option], flag.value), flag
        assert flag.page == options[flag.option]["page"]
        assert flag.why
    launch = load_engine(engine).launch
    assert made.command[: len(launch)] == launch
    dashed = [text for text in made.command if text.startswith("--")]
    assert set(dashed) <= set(options), "an option that did not come as a flag"
    assert len(dashed) == len(set(dashed)), "an option is given twice"


def planned(wish: Wish) -> tuple[Plan | None, str]:
    try:
        return plan(wish), ""
    except ConfigError as error:
        return None, str(error)


@settings(max_examples=300, deadline=None)
@given(
    engine=st.sampled_from(ENGINES),
    gpu=st.sampled_from(sorted(load_gpus())),
    model=st.sampled_from(sorted(load_models())),
    gpus=st.none() | st.integers(1, 9),
    agents=st.integers(1, 3000),
    context=st.none() | st.integers(1, 300_000),
    weights=st.sampled_from(["auto", "bf16", "fp8", "fp4", "f16", "q8_0", "q4_k_m", "mxfp4"]),
    kv=st.sampled_from(["auto", "16bit", "8bit"]),
    draft=st.sampled_from(["none", "ngram", "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B-Instruct"]),
    lmcache=st.booleans(),
    parser=st.sampled_from([None, "hermes", "qwen3_coder"]),
)
def test_every_flag_of_any_plan_is_documented_with_a_legal_value(
    engine: str,
    gpu: str,
    model: str,
    gpus: int | None,
    agents: int,
    context: int | None,
    weights: str,
    kv: str,
    draft: str,
    lmcache: bool,
    parser: str | None,
) -> None:
    wish = Wish(
        engine, gpu, model, gpus=gpus, agents=agents, context_tokens=context, weights=weights,
        kv=kv, draft=draft, lmcache=lmcache, tool_parser=parser,
    )  # fmt: skip
    made, refused = planned(wish)
    if made is None:
        # A refusal is of a wish, never of what a plan itself would have named.
        assert refused
        assert "document" not in refused or "--tool-call-parser" in refused
        return
    size = made.memory_estimated
    assert made.was_run is False
    assert "not run here" in made.not_run
    if not made.fits:
        assert made.command == ()
        assert "does not fit" in made.notes[0]
        return
    assert_documented(engine, made)
    assert size.weights_bytes + size.draft_bytes < size.usable_bytes <= size.gpu_bytes
    held = size.kv_tokens * size.kv_bytes_per_token
    assert held <= size.usable_bytes - size.weights_bytes - size.draft_bytes + size.kv_tokens
    assert 1 <= made.full_sequences <= made.agents
    assert made.full_sequences * made.context_tokens <= size.kv_tokens


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_has_a_plan_with_all_that_is_wished(engine: str) -> None:
    able = engine != "llamacpp"
    made = plan(
        Wish(
            engine,
            "h100",
            LLAMA,
            gpus=4,
            agents=32,
            draft="meta-llama/Llama-3.2-1B-Instruct",
            lmcache=able,
            tool_parser="hermes" if able else None,
        )
    )
    assert made.fits
    assert_documented(engine, made)
    names = {flag.option for flag in made.flags}
    wanted = {
        "vllm": {
            "--tensor-parallel-size", "--max-model-len", "--kv-cache-dtype", "--max-num-seqs",
            "--enable-prefix-caching", "--enable-chunked-prefill", "--speculative-config",
            "--kv-transfer-config", "--enable-prompt-tokens-details", "--scheduling-policy",
        },
        "sglang": {
            "--tp-size", "--context-length", "--kv-cache-dtype", "--chunked-prefill-size",
            "--max-running-requests", "--enable-priority-scheduling", "--enable-lmcache",
            "--speculative-draft-model-path", "--enable-cache-report",
        },
        "llamacpp": {
            "--gpu-layers", "--ctx-size", "--parallel", "--cache-prompt", "--slot-save-path",
            "--spec-draft-model", "--split-mode",
        },
    }  # fmt: skip
    assert wanted[engine] <= names
    members = {field.name for field in made.requests}
    assert members == ({"cache_salt", "priority"} if able else {"cache_prompt", "id_slot"})


def test_what_is_not_documented_cannot_be_given() -> None:
    engine = load_engine("vllm")
    for option, value in (
        ("--turbo", None),
        ("--kv-cache-dtype", "fp3"),
        ("--max-num-seqs", 0),
        ("--max-num-seqs", "many"),
        ("--gpu-memory-utilization", 1.5),
        ("--enable-prefix-caching", "yes"),
        ("--max-model-len", None),
        ("--tool-call-parser", "--trust-remote-code"),
        ("--speculative-config", {"method": "telepathy"}),
        ("--speculative-config", {"speed": 9}),
        ("--max-model-len", {"method": "ngram"}),
        ("--speculative-config", "ngram"),
    ):
        with pytest.raises(ConfigError, match="document"):
            engine.flag(option, value, "a wish")
    with pytest.raises(ConfigError, match="no member"):
        engine.field("mood", "good", "a wish")


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the local engine is not installed")
def test_the_installed_llama_cpp_has_every_option_of_its_file() -> None:
    found = find_spec("xllamacpp")
    assert found is not None
    assert found.origin is not None
    library = b"".join(path.read_bytes() for path in Path(found.origin).parent.glob("*.so"))
    missing = [name for name in documented("llamacpp") if name.encode() + b"\0" not in library]
    assert missing == []


def test_kv_bytes_are_those_that_were_measured_on_the_embedded_engine() -> None:
    # SmolLM2-135M was measured: 23 kB a token in 16 bits, 12 kB in q8_0
    model = load_models()["HuggingFaceTB/SmolLM2-135M-Instruct"]
    sizes = [
        memory("llamacpp", load_gpus()["l4"], 1, model, "f16", kv, None).kv_bytes_per_token
        for kv in ("f16", "q8_0")
    ]
    assert sizes == [2 * 30 * 3 * 64 * 2, 2 * 30 * 3 * 64 * 34 // 32]
    assert [round(size / 1000) for size in sizes] == [23, 12]


def test_memory_is_done_by_hand() -> None:
    gpu = Gpu("a card of 100 GB", "nvidia", 100, fp8=True, fp4="", per_machine=2, source="made up")
    model = Model(parameters_b=10.0, layers=10, kv_heads=2, head_dim=100, heads=4)
    found = memory("sglang", gpu, 2, model, "bf16", "bf16", None)
    # 85 GB of each; 20 GB of weights on two; one of two KV heads each: 2 x 10 x 100 x 2 bytes
    assert (found.usable_bytes, found.weights_bytes) == (85 * 10**9, 10 * 10**9)
    assert found.kv_bytes_per_token == 4000
    assert found.kv_tokens == 75 * 10**9 // 4000
    drafted = memory("sglang", gpu, 2, model, "bf16", "bf16", model)
    assert drafted.draft_bytes == 20 * 10**9
    assert drafted.kv_tokens == 55 * 10**9 // 12000


def test_heads_that_are_fewer_than_gpus_are_kept_by_several() -> None:
    model = Model(parameters_b=1.0, layers=1, kv_heads=4, head_dim=8, heads=32)
    assert [model.kv_elements_per_token(n) for n in (1, 2, 4, 8)] == [64, 32, 16, 16]
    assert [n for n in range(1, 9) if model.divides(n)] == [1, 2, 4, 8]


def test_few_gpus_are_taken_as_long_as_they_hold_it() -> None:
    one = plan(Wish("vllm", "h200", "Qwen/Qwen3-8B", agents=1))
    assert (one.gpus, one.weights, one.kv_cache) == (1, "bf16", "bf16")
    assert "--tensor-parallel-size" not in one.command
    many = plan(Wish("vllm", "h200", "Qwen/Qwen3-8B", agents=200))
    assert many.gpus > 1
    assert many.full_sequences == 200


def test_weights_are_made_smaller_only_where_they_must_be_or_are_asked_to_be() -> None:
    assert plan(Wish("vllm", "h100", LLAMA)).weights == "bf16"
    two = plan(Wish("vllm", "h100", LLAMA, gpus=1, agents=1, context_tokens=2048))
    assert not two.fits or two.weights != "bf16"
    asked = plan(Wish("vllm", "b200", LLAMA, gpus=1, weights="fp4"))
    assert "nvfp4_per_token" in asked.command
    with pytest.raises(ConfigError, match=r"does not compute in it.*H100"):
        plan(Wish("vllm", "a100-80", LLAMA, weights="fp8"))
    with pytest.raises(ConfigError, match="FP8"):
        plan(Wish("sglang", "a100-80", LLAMA, kv="8bit"))


def test_what_fits_only_in_part_says_how_much() -> None:
    made = plan(Wish("vllm", "l40s", "Qwen/Qwen3-32B", gpus=2, agents=500))
    assert made.fits
    assert made.sequences == 500
    assert 0 < made.full_sequences < 500
    assert f"About {made.full_sequences} of 500 agents" in made.notes[0]
    slots = plan(Wish("llamacpp", "l40s", "Qwen/Qwen3-32B", gpus=2, agents=500))
    assert slots.sequences == slots.full_sequences < 500
    assert str(slots.sequences * slots.context_tokens) in slots.command


def test_what_does_not_fit_says_what_would_help() -> None:
    made = plan(Wish("vllm", "l4", "deepseek-ai/DeepSeek-V3.1"))
    assert (made.fits, made.command, made.flags) == (False, (), ())
    assert made.gpus == 8
    assert "More or larger GPUs" in made.notes[0]


def test_an_unknown_model_is_planned_from_its_shape_or_refused_with_what_to_give() -> None:
    with pytest.raises(ConfigError, match=r"give --parameters.*--layers.*--kv-heads.*--head-dim"):
        plan(Wish("vllm", "h100", "me/mine"))
    with pytest.raises(ConfigError, match=r"give --head-dim\. Its config\.json"):
        plan(Wish("vllm", "h100", "me/mine", Given("70B", 80, 8)))
    with pytest.raises(ConfigError, match=r"Did you mean Qwen/Qwen3-32B\?"):
        plan(Wish("vllm", "h100", "Qwen/Qwen3-32"))
    with pytest.raises(ConfigError, match=r"Did you mean meta-llama/Llama-3.1-8B-Instruct\?"):
        plan(Wish("vllm", "h100", "llama-3.1-8b"))
    made = plan(Wish("vllm", "h100", "me/mine", Given("70.6B", 80, 8, 128, 64)))
    known = plan(Wish("vllm", "h100", LLAMA))
    assert made.memory_estimated == known.memory_estimated
    assert any("as given" in note for note in made.notes)


def test_a_model_is_known_by_the_end_of_its_name_and_named_whole() -> None:
    assert LLAMA in plan(Wish("vllm", "h100", "llama-3.3-70b-instruct")).command


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (Wish("tgi", "h100", LLAMA), "there is no engine 'tgi'"),
        (Wish("vllm", "h1000", LLAMA), "did you mean h100"),
        (Wish("vllm", "h100", LLAMA, gpus=16), "at most 8"),
        (Wish("vllm", "h100", LLAMA, gpus=3), "cannot be divided among 3"),
        (Wish("vllm", "h100", LLAMA, context_tokens=10**6), "131,072 at most"),
        (Wish("vllm", "h100", LLAMA, context_tokens=0), "at least 1"),
        (Wish("vllm", "h100", LLAMA, agents=0), "at least 1"),
        (Wish("vllm", "h100", LLAMA, weights="q8_0"), "--stored"),
        (Wish("llamacpp", "h100", LLAMA, weights="fp8"), "for llama.cpp one of"),
        (Wish("vllm", "h100", LLAMA, draft="me/small"), "--draft-parameters"),
        (Wish("vllm", "h100", LLAMA, file="x.gguf"), "only llama.cpp"),
        (Wish("llamacpp", "h100", LLAMA, lmcache=True), "does not know it"),
        (Wish("sglang", "mi300x", LLAMA, draft="ngram"), "on CUDA"),
        (Wish("sglang", "h100", LLAMA, tool_parser="nope"), "--tool-call-parser takes choice"),
        (Wish("vllm", "h100", "openai/gpt-oss-120b", weights="bf16"), "stored as mxfp4"),
        (Wish("vllm", "h200", "deepseek-ai/DeepSeek-V3.1", kv="8bit"), "latent attention"),
        (Wish("vllm", "h100", "-x", Given("1B", 1, 1, 1)), "no model's name"),
    ],
)
def test_wishes_that_cannot_be_granted_say_why(wish: Wish, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        plan(wish)


def test_a_draft_model_takes_memory_and_says_what_is_not_counted() -> None:
    alone = plan(Wish("vllm", "h100", LLAMA, gpus=4))
    known = plan(Wish("vllm", "h100", LLAMA, gpus=4, draft="meta-llama/Llama-3.2-1B-Instruct"))
    other = plan(Wish("vllm", "h100", LLAMA, gpus=4, draft="me/x", draft_parameters="1B"))
    assert alone.memory_estimated.draft_bytes == 0
    assert known.memory_estimated.draft_bytes == 2_480_000_000
    assert known.memory_estimated.kv_tokens < alone.memory_estimated.kv_tokens
    assert any("own KV cache is not counted" in note for note in other.notes)


@pytest.mark.parametrize(
    ("text", "billions"),
    [("70B", 70), ("0.6b", 0.6), ("135M", 0.135), ("1T", 1000), ("8000000000", 8)],
)
def test_numbers_of_parameters_are_read(text: str, billions: float) -> None:
    assert parameters_b(text) == pytest.approx(billions)


@pytest.mark.parametrize("text", ["", "many", "-7B", "0B", "7 billion", "nan"])
def test_what_is_no_number_of_parameters_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no number of parameters"):
        parameters_b(text)


def test_every_fact_has_its_source() -> None:
    for name in ENGINES:
        engine = load_engine(name)
        assert engine.version
        assert engine.source
        assert all(option.page for option in engine.options)
    assert all(gpu.source for gpu in load_gpus().values())
