from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evalspec.artifacts.protocol import BatchRule
from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import BenchmarkWork, work_of
from evalspec.errors import ScoringError
from evalspec.scoring.batching import plan_batches
from evalspec.scoring.checkpoint import context_length, plan_tokens, verify_files
from evalspec.scoring.tokens import EncodedWork, encode_work

torch = pytest.importorskip("torch")
causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")

LETTERS = LetterScoring(method="letter")
OPTIONS = OptionScoring(method="option")


@pytest.fixture(scope="module", params=["llama", "llama with bos", "gpt2", "gemma2 with soft-cap"])
def folder(request: pytest.FixtureRequest, make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    architecture, *more = request.param.split()
    extra = {"final_logit_softcapping": 3.0} if architecture == "gemma2" else {}
    return make.checkpoint(tmp_path_factory.mktemp("models") / architecture, architecture=architecture, bos="bos" in more, **extra)


def work(make: SimpleNamespace, scoring: Any, count: int = 40) -> BenchmarkWork:
    questions = make.questions(count)
    return work_of(make.benchmark("b", questions, scoring), questions)


def in_batches(scorer: Any, encoded: EncodedWork, budget: int) -> np.ndarray:
    plan = plan_batches([one.longest for one in encoded.questions], [len(one.rows) for one in encoded.questions], BatchRule(token_budget=budget))
    values = np.zeros((len(encoded.questions), 4))
    for batch in plan:
        values[list(batch)] = scorer.logprobs([encoded.questions[position] for position in batch])
    return values


def one_at_a_time(folder: Path, of: BenchmarkWork, precision: str) -> np.ndarray:
    """A plain loop: prompt and answer without its last id, all logits, log-softmax, one answer after the other."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from evalspec.scoring.arithmetic import products

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32 if precision == "float32" else "auto").eval()
    body, head = model.base_model, model.get_output_embeddings().weight.float()
    cap = getattr(model.config, "final_logit_softcapping", None)
    sums = []
    for question in of.questions:
        context = len(tokenizer(question.prompt)["input_ids"])
        for answer in question.answers:
            ids = torch.tensor([tokenizer(f"{question.prompt} {answer}")["input_ids"]])
            with torch.inference_mode(), products(model, model.dtype):
                logits = body(input_ids=ids[:, :-1]).last_hidden_state[0].float() @ head.T
            logits = logits if cap is None else cap * torch.tanh(logits / cap)
            logprobs = torch.log_softmax(logits, dim=-1)
            sums.append(sum(logprobs[place - 1, ids[0, place]].item() for place in range(context, ids.shape[1])))
    return np.array(sums).reshape(len(of.questions), -1)


@pytest.mark.parametrize("scoring", [LETTERS, OPTIONS], ids=["letter", "option"])
def test_planned_batches_give_what_a_plain_loop_gives(make: SimpleNamespace, folder: Path, scoring: Any) -> None:
    scorer = causal_lm.load(folder, model="m", precision="float32")
    asked = work(make, scoring)
    batched = in_batches(scorer, encode_work(asked, scorer.vocabulary), 700)
    np.testing.assert_allclose(batched, one_at_a_time(folder, asked, "float32"), atol=1e-4)


@pytest.mark.parametrize("scoring", [LETTERS, OPTIONS], ids=["letter", "option"])
def test_as_shipped_computes_the_body_as_stored_and_the_head_in_float32(make: SimpleNamespace, folder: Path, scoring: Any) -> None:
    scorer = causal_lm.load(folder, model="m", precision="as_shipped")
    assert (scorer.dtype.split(",")[0], scorer.head) == ("bfloat16", "float32 copy")
    asked = work(make, scoring, 6)
    encoded = encode_work(asked, scorer.vocabulary)
    rows = [
        replace(one, rows=one.rows[answer.row : answer.row + 1], answers=(replace(answer, row=0),))
        for one in encoded.questions
        for answer in one.answers
    ]
    values = np.array([scorer.logprobs([row])[0][0] for row in rows]).reshape(6, 4)
    # Both read rows of the same length, one at a time, so that even bfloat16 rounds alike.
    np.testing.assert_allclose(values, one_at_a_time(folder, asked, "as_shipped"), atol=1e-4)


def test_every_way_of_asking_for_few_positions_gives_the_same(make: SimpleNamespace, llama: Path) -> None:
    scorer = causal_lm.load(llama, model="m", precision="float32")
    encoded = encode_work(work(make, OPTIONS, 12), scorer.vocabulary)
    assert scorer.positions == "marked"
    marked = in_batches(scorer, encoded, 600)
    for style in ("shared", "all"):
        np.testing.assert_allclose(in_batches(replace(scorer, positions=style), encoded, 600), marked, atol=1e-5)


def test_bos_is_there_exactly_once_where_the_tokenizer_adds_it(make: SimpleNamespace, tmp_path: Path, llama: Path) -> None:
    with_bos = causal_lm.load(make.checkpoint(tmp_path / "bos", bos=True), model="m", precision="float32").vocabulary
    without = causal_lm.load(llama, model="m", precision="float32").vocabulary
    assert (with_bos.prefix, without.prefix) == ((1,), ())
    first = encode_work(work(make, LETTERS, 3), with_bos).first_ids
    assert (first[0], first.count(1)) == (1, 1)


def test_tokens_are_planned_without_torch_as_they_are_scored(make: SimpleNamespace, folder: Path) -> None:
    scorer = causal_lm.load(folder, model="m", precision="as_shipped")
    for scoring in (LETTERS, OPTIONS):
        asked = work(make, scoring, 8)
        assert plan_tokens(folder, asked, model="m") == encode_work(asked, scorer.vocabulary)


def test_a_padding_id_that_is_a_real_token_changes_nothing(make: SimpleNamespace, llama: Path) -> None:
    scorer = causal_lm.load(llama, model="m", precision="float32")
    short, long = (encode_work(work(make, LETTERS, 20), scorer.vocabulary).questions[index] for index in (0, 16))
    assert long.longest > short.longest
    np.testing.assert_allclose(scorer.logprobs([short, long])[0], scorer.logprobs([short])[0], atol=1e-5)


def rewritten(folder: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


def test_a_missing_weight_is_refused_and_not_made_up(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = make.checkpoint(tmp_path / "m")
    weights = weights_of(folder)
    weights.pop("model.norm.weight")
    rewritten(folder, weights)
    with pytest.raises(ScoringError, match=r"model 'm': the checkpoint 'm' lacks the weight 'model\.norm\.weight'"):
        causal_lm.load(folder, model="m", precision="float32")


def test_an_encoder_is_refused_with_the_way_to_mend_a_decoder_that_was_saved_as_one(make: SimpleNamespace, llama: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = Path(shutil.copytree(llama, tmp_path / "m"))
    words = json.loads((llama / "config.json").read_text())["vocab_size"]
    config = transformers.BertConfig(vocab_size=words, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
    transformers.BertLMHeadModel(config).save_pretrained(folder)
    with pytest.raises(ScoringError, match="model 'm' is no causal language model"):
        causal_lm.load(folder, model="m", precision="float32")
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "is_decoder": True}))
    scorer = causal_lm.load(folder, model="m", precision="float32")
    short, long = (encode_work(work(make, LETTERS, 20), scorer.vocabulary).questions[index] for index in (0, 16))
    np.testing.assert_allclose(scorer.logprobs([short, long])[0], scorer.logprobs([short])[0], atol=1e-5)


def test_code_of_a_model_folder_is_never_asked_for(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = make.checkpoint(tmp_path / "m")
    for name in ("tokenizer_config.json", "config.json"):
        path = folder / name
        content = path.read_text()
        path.write_text(json.dumps(json.loads(content) | {"auto_map": {"AutoConfig": "evil.Config"}}))
        with pytest.raises(ScoringError, match="auto_map"):
            causal_lm.load(folder, model="m", precision="float32")
        path.write_text(content)


@pytest.mark.parametrize(
    ("key", "value"),
    [("mlp_bias", "x"), ("num_hidden_layers", []), ("num_attention_heads", 0), ("model_type", {}), ("rope_parameters", "x")],
)
def test_a_configuration_that_the_library_does_not_understand_is_one_plain_error(llama: Path, tmp_path: Path, key: str, value: object) -> None:
    folder = Path(shutil.copytree(llama, tmp_path / "m"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(ScoringError, match=r"^model 'm' (cannot be loaded from 'm'|from 'm' cannot compute): \S"):
        causal_lm.load(folder, model="m", precision="float32")


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}'])
def test_a_tokenizer_that_is_none_stops_the_plan_and_the_run_with_one_plain_error(
    make: SimpleNamespace, llama: Path, tmp_path: Path, content: str
) -> None:
    folder = Path(shutil.copytree(llama, tmp_path / "m"))
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ScoringError, match="'m': the tokenizer cannot be used: "):
        plan_tokens(folder, work(make, LETTERS), model="m")


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"text_config": "x", "n_positions": 9}, 9),
        ({"text_config": {"max_position_embeddings": 7}, "n_positions": 9}, 7),
        ({"text_config": {}, "max_seq_len": True}, None),
        ({"max_position_embeddings": "x", "n_positions": -1}, None),
    ],
)
def test_the_context_is_as_long_as_the_configuration_says_where_it_says_a_number(config: dict[str, object], length: int | None) -> None:
    assert context_length(config) == length


def test_a_folder_with_pickles_alone_is_refused(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = make.checkpoint(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ScoringError, match="safetensors"):
        causal_lm.load(folder, model="m", precision="float32")


def test_files_that_are_not_those_of_the_protocol_are_named(make: SimpleNamespace, tmp_path: Path) -> None:
    folder = make.checkpoint(tmp_path / "m")
    identity = make.identity(folder)
    verify_files(folder, identity)
    (folder / "extra.safetensors").write_bytes(b"")
    with pytest.raises(ScoringError, match=r"extra\.safetensors is not among"):
        verify_files(folder, identity)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(bytes(content))
    with pytest.raises(ScoringError, match=r"model\.safetensors is not the file"):
        verify_files(folder, identity)


def test_bfloat16_logits_would_tie_where_the_float32_head_does_not(make: SimpleNamespace, llama: Path) -> None:
    scorer = causal_lm.load(llama, model="m", precision="as_shipped")
    values = in_batches(scorer, encode_work(work(make, LETTERS), scorer.vocabulary), 700)
    rounded = torch.tensor(values + 20).bfloat16().float().numpy()
    ties = [int(sum(len(set(row)) < 4 for row in rows)) for rows in (values, rounded)]
    assert ties[0] == 0 < ties[1]
    assert math.isfinite(values.sum())


def with_template(make: SimpleNamespace, folder: Path) -> Path:
    made = make.checkpoint(folder, bos=True)
    (made / "chat_template.jinja").write_text("<bos>{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}[model]:")
    return made


def test_in_a_chat_template_the_prompt_is_the_message_of_the_user_and_there_is_one_bos(make: SimpleNamespace, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = with_template(make, tmp_path / "chat")
    scorer = causal_lm.load(folder, model="m", precision="float32")
    asked = work(make, LetterScoring(method="letter", chat=True), 3)
    encoded = encode_work(asked, scorer.vocabulary)
    expected = AutoTokenizer.from_pretrained(folder)(f"[user] {asked.questions[0].prompt}\n[model]:")["input_ids"]
    assert encoded.questions[0].rows[0] == tuple(expected)
    assert encoded.first_ids.count(1) == 1
    assert plan_tokens(folder, asked, model="m") == encoded


def test_a_chat_template_that_is_not_there_is_an_error_and_not_plain_text(make: SimpleNamespace, llama: Path) -> None:
    scorer = causal_lm.load(llama, model="m", precision="float32")
    with pytest.raises(ScoringError, match="asks for the chat template of model 'm', which has none"):
        encode_work(work(make, LetterScoring(method="letter", chat=True), 3), scorer.vocabulary)


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_layers_that_a_library_places_give_the_same_bits(make: SimpleNamespace, tmp_path: Path, architecture: str) -> None:
    """On processors alone every layer is placed on them: loading, head and abilities go through; accelerators are another matter."""
    pytest.importorskip("accelerate")
    folder = make.checkpoint(tmp_path / "m", architecture=architecture)
    scorers = [causal_lm.load(folder, model="m", precision="as_shipped", device=device) for device in ("cpu", "auto")]
    one, other = (scorer.logprobs(encode_work(work(make, LETTERS, 6), scorer.vocabulary).questions) for scorer in scorers)
    assert one == other
