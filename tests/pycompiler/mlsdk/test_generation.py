"""Generation with a cache on the device: tokens, sampling, stops, and the words that move."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from compiling import context, sampled
from plamo_model import Plamo
from torch import nn

from pycompiler.errors import PycompilerError
from pycompiler.mlsdk.experimental.llm.generation import Decoder, chances
from pycompiler.pfvm.device_functions import STORE
from pycompiler.runtime.dram import DramTensor
from pycompiler.runtime.executable import DeviceFunction

transformers = pytest.importorskip("transformers")
WORDS, WIDTH, POSITIONS, CHUNK = 16, 8, 12, 3
#: Long words of DRAM that move together.
BURST = 64
PROMPT = [3, 14, 15, 9, 2]


def config(kind: str = "Llama", **settings: Any) -> Any:
    ends = dict.fromkeys(("eos_token_id", "bos_token_id", "pad_token_id"))
    if kind == "GPT2":
        sizes = {"n_embd": WIDTH, "n_layer": 1, "n_head": 2, "n_positions": POSITIONS}
    else:
        sizes = {"hidden_size": WIDTH, "intermediate_size": 16, "num_hidden_layers": 1}
        sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4}
        sizes |= {"max_position_embeddings": POSITIONS}
    made = getattr(transformers, f"{kind}Config")
    return made(**{"vocab_size": WORDS, **sizes, **ends, **settings})


class Small(nn.Module):
    """A head of attention with what generation needs of a model; it compiles in a second."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.config = config(num_attention_heads=1, head_dim=WIDTH, eos_token_id=11)
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.mixed, self.head = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, input_ids: Any, cache: Any = None, logits_to_keep: Any = slice(None)) -> Any:
        seen = 0 if cache is None or not cache.layers[0].is_initialized else cache.get_seq_length()
        places = torch.arange(input_ids.shape[1]) + seen
        x = self.words(input_ids) + self.places(places)
        query, key, value = self.mixed(x)[:, None].chunk(3, -1)
        if cache is not None:
            key, value = cache.update(key, value, 0)
        hidden = places[:, None] < torch.arange(key.shape[2])
        scores = (query @ key.mT).masked_fill(hidden, -1e9)
        found = (scores.softmax(-1) @ value)[:, 0] + x
        return type("Output", (), {"logits": self.head(found[:, logits_to_keep])})


def most_likely(model: Any, prompt: list[int], count: int) -> list[int]:
    """Return the tokens of the whole model, without a cache."""
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(int(model(torch.tensor([tokens])).logits[0, -1].argmax()))
    return tokens[len(prompt) :]


@pytest.fixture(scope="module", params=sampled(["pfvm:cpu", "emu2:mini"]))
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Small, Decoder, Path]:
    model, folder = Small().eval(), tmp_path_factory.mktemp("small")
    shared = context(request.param)
    sizes = {"positions": POSITIONS, "chunk": CHUNK}
    return model, Decoder(shared, model, folder, quiet=True, **sizes), folder


@pytest.mark.parametrize(
    ("prompt", "count"),
    [
        (PROMPT, 6),
        ([7], POSITIONS),  # less than a part, up to the last place
        (list(range(POSITIONS - 1)), 2),  # the last part begins earlier
        (torch.tensor([PROMPT[:CHUNK]]), 1),
    ],
)
def test_tokens_are_those_of_the_whole_model(
    made: tuple[Small, Decoder, Path], prompt: Any, count: int
) -> None:
    model, decoder, _ = made
    wanted = most_likely(model, torch.as_tensor(prompt).flatten().tolist(), count)
    assert list(decoder.generate(prompt, count, stop=())) == wanted
    on_device = decoder.prefill.allocate_input_proxy()["tokens"]
    on_device.load_from(torch.tensor([PROMPT[:CHUNK]]))
    assert len(list(decoder.generate(on_device, 2, stop=()))) == 2


def test_tokens_come_one_by_one_and_stop(
    made: tuple[Small, Decoder, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, decoder, _ = made
    wanted, calls = list(decoder.generate(PROMPT, 6, stop=())), Counter[str]()
    kind = type(decoder.decode.function)
    run = kind.run

    def counted(self: Any, inputs: Any) -> Any:
        calls["decode" if self is decoder.decode.function else "prefill"] += 1
        return run(self, inputs)

    monkeypatch.setattr(kind, "run", counted)
    stream = decoder.generate(PROMPT, 6, stop=())
    assert (next(stream), dict(calls)) == (wanted[0], {"prefill": 2})
    assert (next(stream), calls["decode"]) == (wanted[1], 1)
    end = wanted.index(wanted[3]) + 1
    assert list(decoder.generate(PROMPT, 6, stop={wanted[3]})) == wanted[:end]
    assert list(stream) == []  # another one began
    decoder._config.eos_token_id = [wanted[3], WORDS - 1]
    assert list(decoder.generate(PROMPT, 6)) == wanted[:end]


def test_drawn_tokens_are_those_of_the_generator(made: tuple[Small, Decoder, Path]) -> None:
    model, decoder, _ = made
    found, tokens = set(), list(PROMPT)
    for seed in range(8):
        again = [
            list(
                decoder.generate(
                    PROMPT,
                    3,
                    temperature=1.5,
                    top_k=3,
                    stop=(),
                    generator=torch.Generator().manual_seed(seed),
                )
            )
            for _ in range(2)
        ]
        assert again[0] == again[1]
        found.add(tuple(again[0]))
        tokens = list(PROMPT)
        for token in again[0]:
            with torch.no_grad():
                logits = model(torch.tensor([tokens])).logits[0, -1]
            assert token in logits.topk(3).indices
            tokens.append(token)
    assert len(found) > 2


def test_the_cache_stays_where_it_is(
    made: tuple[Small, Decoder, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both functions use the same words, and the host writes a token and its place alone."""
    _, decoder, folder = made
    if not isinstance(decoder.decode.function, DeviceFunction):
        pytest.skip("the host has no device memory")
    list(decoder.generate(PROMPT, 2, stop=()))
    written: list[int] = []
    write = DramTensor.write_words
    monkeypatch.setattr(
        DramTensor, "write_words", lambda self, words: (written.append(1), write(self, words))[1]
    )
    decoder._logits(decoder.decode, [1], 0)
    decoder._logits(decoder.prefill, [1] * CHUNK, 0)
    assert len(written) == 2 * 2  # `tokens` and `at`, twice
    rows = json.loads((folder / "decode" / "report.json").read_text())["nodes"]
    for part in ("keys", "values"):
        moved = [row["dram_words"] for row in rows if f".cache.0.{part}_" in row["node"]]
        read, new = (sum(words[way] for words in moved) for way in ("read", "written"))
        # Each long word of its image once, and as many are written.
        assert read == new == -(-POSITIONS * WIDTH // 2 // BURST) * BURST


def test_a_token_writes_its_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A longer cache is read once, and written where the row is: in two runs of DRAM."""
    monkeypatch.setitem(globals(), "POSITIONS", 320)
    model, shared = Small().eval(), context("emu2:mini")
    decoder = Decoder(shared, model, tmp_path, positions=POSITIONS, chunk=1, quiet=True)
    assert list(decoder.generate(PROMPT, 4, stop=())) == most_likely(model, PROMPT, 4)
    rows = json.loads((tmp_path / "decode" / "report.json").read_text())["nodes"]
    moved = {"read": 0, "written": 0}
    for row in rows:
        if "length" not in row["node"] and (".cache." in row["node"] or row["op"] == STORE):
            moved = {way: count + row["dram_words"][way] for way, count in moved.items()}
    assert moved == {"read": POSITIONS * WIDTH, "written": 2 * 2 * BURST}


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (0.7, 0, 1.0), (1.0, 5, 1.0), (1.0, 99, 1.0), (1.0, 0, 0.6), (2.0, 9, 0.8),
     (1.0, 1, 0.01)],
)  # fmt: skip
def test_chances_are_those_of_transformers(temperature: float, top_k: int, top_p: float) -> None:
    torch.manual_seed(1)
    logits = torch.randn(40).mul(3).double()
    kinds: list[Callable[[Any, Any], Any]] = [transformers.TemperatureLogitsWarper(temperature)]
    kinds += [transformers.TopKLogitsWarper(top_k)] if top_k else []
    kinds += [transformers.TopPLogitsWarper(top_p)] if top_p < 1 else []
    scores = logits[None]
    for kind in kinds:
        scores = kind(None, scores)
    found = chances(logits, temperature, top_k, top_p)
    assert torch.allclose(found / found.sum(), scores[0].softmax(0))
    assert chances(logits, 0.0, top_k, top_p).tolist() == (logits == logits.max()).tolist()


WRONG: dict[str, tuple[Callable[[Decoder], Any], str]] = {
    "no tokens": (lambda d: d.generate([], 1), "P0704"),
    "several texts": (lambda d: d.generate([PROMPT, PROMPT], 1), "P0704.*one text"),
    "no room": (lambda d: d.generate(PROMPT, POSITIONS), "P0704"),
    "an unknown token": (lambda d: d.generate([WORDS], 1), "P0704"),
    "cold": (lambda d: d.generate(PROMPT, 1, temperature=-1.0), "P0704"),
    "none of them": (lambda d: d.generate(PROMPT, 1, temperature=1.0, top_k=-1), "P0704"),
    "too much": (lambda d: d.generate(PROMPT, 1, temperature=1.0, top_p=1.5), "P0704"),
    "nothing": (lambda d: d.generate(PROMPT, 1, temperature=1.0, top_p=0.0), "P0704"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(made: tuple[Small, Decoder, Path], case: str) -> None:
    call, code = WRONG[case]
    with pytest.raises(PycompilerError, match=code):
        next(call(made[1]))


@pytest.mark.parametrize("kind", ["Mistral", "Bert"])
def test_what_is_no_such_decoder(kind: str, tmp_path: Path) -> None:
    """A window that slides forgets tokens; an encoder gives no logits of the next token."""
    given = config(kind, **({"sliding_window": 4} if kind == "Mistral" else {}))
    made = transformers.AutoModel if kind == "Bert" else transformers.AutoModelForCausalLM
    model, shared = made.from_config(given), context("pfvm:cpu")
    with pytest.raises(PycompilerError, match=f"P0703.*{type(model).__name__}"):
        Decoder(shared, model, tmp_path, positions=8)


@pytest.mark.parametrize(
    ("kind", "device"),
    sampled(
        [(kind, device) for device in ("pfvm:cpu", "emu2:mini") for kind in
         ("Llama", "Qwen2", "Qwen3", "GPT2")], every=8,
    ),
)  # fmt: skip
def test_families(kind: str, device: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config(kind)).eval()
    chunk = 1 if (kind, device) == ("Llama", "pfvm:cpu") else CHUNK
    shared = context(device)
    decoder = Decoder(shared, model, tmp_path, positions=POSITIONS, chunk=chunk, quiet=True)
    given = torch.tensor([PROMPT])
    wanted = model.generate(
        given, attention_mask=torch.ones_like(given), max_new_tokens=6, do_sample=False
    )
    assert PROMPT + list(decoder.generate(given, 6)) == wanted[0].tolist()


def whisper() -> Any:
    """Return a Whisper of one and two layers whose tokens depend on what it hears."""
    torch.manual_seed(0)
    parts = {"d_model": WIDTH, "num_mel_bins": 4, "encoder_layers": 1, "decoder_layers": 2}
    parts |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2)
    parts |= dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 16)
    parts |= {"max_source_positions": 6, "max_target_positions": POSITIONS}
    ends = dict.fromkeys(("eos_token_id", "bos_token_id", "pad_token_id"))
    given = transformers.WhisperConfig(vocab_size=WORDS, decoder_start_token_id=1, **parts, **ends)
    model = transformers.WhisperForConditionalGeneration(given).eval()
    for name, value in model.named_parameters():
        if "encoder_attn" in name or "model.encoder.conv" in name:
            value.data.mul_(40)
    return model


@pytest.mark.parametrize("device", sampled(["pfvm:cpu", "emu2:mini"]))
def test_whisper(device: str, tmp_path: Path) -> None:
    """Each text has what the encoder heard of its own; other inputs are refused."""
    model, shared, found = whisper(), context(device), set()
    heard = [{"input_features": torch.randn(1, 4, 12)} for _ in range(3)]
    settings = {"positions": POSITIONS, "chunk": CHUNK, "quiet": True}
    decoder = Decoder(shared, model, tmp_path, inputs=heard[0], **settings)
    for inputs in (heard[0], heard[1], heard[2], heard[1]):
        tokens = [1, 3, 4, 5]
        with torch.no_grad():
            for _ in range(5):
                own = model(**inputs, decoder_input_ids=torch.tensor([tokens])).logits[0, -1]
                tokens.append(int(own.argmax()))
        given = None if inputs is heard[0] else inputs  # the samples
        assert list(decoder.generate(tokens[:4], 5, stop=(), inputs=given)) == tokens[4:]
        found.add(tuple(tokens))
    assert len(found) == 3
    with pytest.raises(PycompilerError, match=r"P0704.*inputs"):
        Decoder(shared, model, tmp_path, positions=POSITIONS)
    with pytest.raises(PycompilerError, match=r"P0704.*no encoder"):
        Decoder(shared, Small(), tmp_path, positions=POSITIONS, inputs=heard[0])


@pytest.mark.parametrize("device", sampled(["emu2:mini", "pfvm:cpu"]))
def test_plamo(device: str, tmp_path: Path) -> None:
    """A layer whose four heads share two keys and values."""
    torch.manual_seed(0)
    sizes = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = Plamo(config(**sizes)).eval()
    decoder = Decoder(context(device), model, tmp_path, positions=POSITIONS, chunk=1, quiet=True)
    assert list(decoder.generate(PROMPT, 6, stop=())) == most_likely(model, PROMPT, 6)
