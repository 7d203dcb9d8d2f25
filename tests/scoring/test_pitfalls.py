"""What has made log-probabilities wrong elsewhere, and is told or computed right here; further ones are tested where they belong."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evalspec.artifacts.study import LetterScoring, OptionScoring
from evalspec.artifacts.work import work_of
from evalspec.errors import ScoringError
from evalspec.scoring.tokens import encode_work

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
causal_lm = pytest.importorskip("evalspec.scoring.causal_lm")


@pytest.mark.parametrize("version", ["4.57.6", "5.2.0"])
def test_a_transformers_that_reads_rope_settings_wrongly_or_runs_foreign_code_is_refused(
    llama: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(transformers, "__version__", version)
    with pytest.raises(ScoringError, match=rf"transformers {version} is too old; 5\.3 or newer is needed"):
        causal_lm.load(llama, model="m", precision="float32")


@pytest.mark.parametrize("scoring", [LetterScoring(method="letter"), OptionScoring(method="option")], ids=["letter", "option"])
@pytest.mark.parametrize(
    ("kind", "scale"),
    [("CohereConfig", {"logit_scale": 0.25, "pad_token_id": 0}), ("GraniteConfig", {"logits_scaling": 4.0})],
    ids=["cohere", "granite"],
)
def test_a_scale_of_the_logits_is_that_of_the_model_itself(
    make: SimpleNamespace, llama: Path, tmp_path: Path, kind: str, scale: dict[str, float], scoring: LetterScoring | OptionScoring
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    torch.manual_seed(1)
    config = getattr(transformers, kind)(vocab_size=len(tokenizer), initializer_range=0.3, tie_word_embeddings=True, **shape, **scale)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    questions = make.questions(6)
    scorer = causal_lm.load(tmp_path, model="m", precision="float32")
    encoded = encode_work(work_of(make.benchmark("b", questions, scoring), questions), scorer.vocabulary)
    expected, unscaled = [], []
    for question in encoded.questions:
        for answer in question.answers:
            ids = torch.tensor([question.rows[answer.row]])
            with torch.inference_mode():
                body = model.base_model(input_ids=ids).last_hidden_state @ model.get_output_embeddings().weight.T
                logits = (model(input_ids=ids).logits[0], body[0])
            places = range(answer.start, answer.start + len(answer.ids))
            for sums, values in zip((expected, unscaled), (torch.log_softmax(one, dim=-1) for one in logits), strict=True):
                sums.append(sum(values[place, token].item() for place, token in zip(places, answer.ids, strict=True)))
    found = np.concatenate(scorer.logprobs(encoded.questions))
    np.testing.assert_allclose(found, expected, atol=2e-4)  # float32 sums in another order
    assert np.abs(found - unscaled).max() > 0.1


def test_the_checkpoints_that_come_along_name_a_tokenizer_that_every_transformers_knows(root: Path) -> None:
    settings = sorted((root / "specs" / "demo" / "checkpoints").glob("*/tokenizer_config.json"))
    assert len(settings) == 6
    assert {json.loads(path.read_text(encoding="utf-8"))["tokenizer_class"] for path in settings} == {"PreTrainedTokenizerFast"}
