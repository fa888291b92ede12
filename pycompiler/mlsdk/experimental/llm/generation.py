"""Texts of transformers' decoders, token by token; the key-value cache stays on the device."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ....errors import error
from ....frontend.tensor_names import set_tensor_name
from ...context import Context
from ...function import CompiledFunction, TensorLike

__all__ = ["Decoder", "chances"]


class Decoder:
    """A language model of transformers, with a static cache for ``positions`` tokens.

    Two compiled functions share the cache: one takes ``chunk`` tokens of a prompt (as many as fit),
    the other one token. Models with an encoder need ``inputs``, samples of what that takes. It is a
    third function, `encode`, which writes the keys and values that the tokens look at.

    Model and cache are registered under ``name``; ``settings`` are those of ``Context.compile``.
    P0703 for models whose caches are not a key and a value for each token of each layer (sliding
    windows, states), P0704 for ``inputs`` without an encoder, or the other way round.
    """

    def __init__(
        self,
        context: Context,
        model: Any,
        codegen_dir: str | Path,
        *,
        positions: int,
        chunk: int = 16,
        name: str = "decoder",
        inputs: Mapping[str, torch.Tensor] | None = None,
        options: Mapping[str, Any] | None = None,
        **settings: Any,
    ):
        self._chunk = chunk = max(1, min(chunk, positions))
        self._positions, self._config = positions, model.config
        caches = _Caches(model, positions, inputs)
        context.registry.register(name, model)
        for number, part, tensor in caches.tensors():
            set_tensor_name(tensor, f"{name}.cache.{number}.{part}")
            context.register_buffer(tensor)
        proxy = context.get_registered_value_proxy
        self._lengths = [proxy(t) for _, part, t in caches.tensors() if part == "cumulative_length"]

        def build(work: Any, part: str, sample: Any, **added: Any) -> CompiledFunction:
            own, folder = {**(options or {}), **added}, Path(codegen_dir) / part
            return context.compile(work, sample, folder, options=own, **settings)

        def compiled(part: str, count: int, **added: Any) -> CompiledFunction:
            sample = {"tokens": torch.zeros(1, count).long(), "at": torch.tensor([0])}
            return build(caches.step, part, sample, **added)

        #: The functions: of the encoder, of one token, and of some of a prompt.
        self.encode = build(caches.encode, "encode", inputs) if inputs is not None else None
        self.decode = self.prefill = compiled("decode", 1)
        own, in_place = _layouts(self.decode, f"{name}.cache.")
        own |= (options or {}).get("overrides", {})
        if not in_place:
            self.decode = self.prefill = compiled("decode", 1, overrides=own)
        if chunk > 1:
            self.prefill = compiled("prefill", chunk, overrides=own)

    def generate(
        self,
        prompt: Sequence[int] | TensorLike,
        max_new_tokens: int,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        stop: Collection[int] | None = None,
        generator: torch.Generator | None = None,
        inputs: Mapping[str, TensorLike] | None = None,
    ) -> Iterator[int]:
        """Yield the tokens behind ``prompt`` as they come, the last one also if it is in ``stop``.

        They are drawn by :func:`chances`; at the temperature 0, each is the most likely one.
        ``stop`` None stands for the model's own ends. ``inputs`` are for the encoder; None are
        those of the call before, at first the samples. A new call ends the one before. P0704.
        """
        given, room = torch.as_tensor(prompt), self._positions - max_new_tokens + 1
        ids, size, words = given.flatten().tolist(), (1, *given.shape)[-1], self._config.vocab_size
        if not 0 < len(ids) == size <= room or not 0 <= min(ids) <= max(ids) < words:
            legal = f"one text of 1 to {room} tokens below {words}, for {max_new_tokens} more"
            raise error("P0704", name="prompt", value=f"{[*given.shape]}: {ids[:8]}", legal=legal)
        own = self._config.eos_token_id if stop is None else stop
        ends = {own} if isinstance(own, int) else set(own or ())
        self._turn = turn = object()
        if inputs is not None:
            _check_inputs(inputs, encodes=self.encode is not None)
            if self.encode is not None:
                self.encode(inputs)
        for number in range(0, len(ids), self._chunk):
            # A last part that would end behind the cache begins earlier, and is computed again.
            begin = min(number, self._positions - self._chunk)
            few = ids[begin : begin + self._chunk]
            self._seen(begin)
            logits = self._logits(self.prefill, few + [0] * (self._chunk - len(few)), len(few) - 1)
        self._seen(len(ids))
        for left in reversed(range(max_new_tokens)):
            likely = chances(logits, temperature, top_k, top_p)
            yield (token := int(torch.multinomial(likely, 1, generator=generator)))
            if token in ends or not left or self._turn is not turn:
                return
            logits = self._logits(self.decode, [token], 0)

    def _seen(self, count: int) -> None:
        """Tell the cache that it has so many tokens."""
        for length in self._lengths:
            length.load_from(torch.tensor(count))

    def _logits(self, function: CompiledFunction, tokens: list[int], at: int) -> torch.Tensor:
        given = {"tokens": torch.tensor([tokens]), "at": torch.tensor([at])}
        return function(given)["logits"].cpu()


def chances(logits: torch.Tensor, temperature: float, top_k: int, top_p: float) -> torch.Tensor:
    """Return the probability of each token, up to a common factor. P0704.

    ``temperature`` divides the logits; 0 leaves the most likely token alone. ``top_k`` leaves so
    many of the most likely tokens (0: all), ``top_p`` the fewest of these with that probability.
    """
    if not (0 <= temperature < math.inf and top_k >= 0 and 0 < top_p <= 1):
        found, legal = (temperature, top_k, top_p), "0 or more, 0 or more, and at most 1"
        raise error("P0704", name="temperature, top_k, top_p", value=found, legal=legal)
    if not temperature:
        return torch.zeros_like(logits).index_fill(0, logits.argmax(), 1)
    scores = logits.double() / temperature
    least = scores.sort(descending=True).values[: top_k or None][-1]
    probabilities = scores.masked_fill(scores < least, -math.inf).softmax(0)
    ordered, tokens = probabilities.sort(descending=True)
    return probabilities.index_fill(0, tokens[ordered.cumsum(0) - ordered >= top_p], 0)


class _Caches:
    """The caches of a model: of its own tokens, and of what its encoder says. P0703, P0704."""

    def __init__(self, model: Any, positions: int, inputs: Mapping[str, torch.Tensor] | None):
        from transformers.cache_utils import StaticCache, StaticLayer  # slow

        known, self._model = inspect.signature(model.forward).parameters, model
        self._argument = "cache" if "cache" in known else "past_key_values"
        config = copy.deepcopy(model.config)
        encodes = bool(getattr(config, "is_encoder_decoder", False))
        _check_inputs(inputs, encodes=encodes)
        self._heard: Any = None
        with torch.no_grad():
            if inputs is not None:
                self._states, self._heard = self._hear(inputs)
                config.num_hidden_layers = len(self._heard.layers)
            self.own = StaticCache(config=config, max_cache_len=positions)
            plain = all(type(layer) is StaticLayer for layer in self.own.layers)
            needed = {self._argument, "encoder_outputs" if encodes else "logits_to_keep"}
            if not plain or not needed <= known.keys():
                reason = "it has no `logits_to_keep`, or a cache that forgets tokens"
                remedy = "use a ...ForCausalLM with full attention in all layers"
                raise error("P0703", name=type(model).__name__, reason=reason, remedy=remedy)
            # A first token makes the tensors.
            self.step({"tokens": torch.zeros(1, 1).long(), "at": torch.tensor([0])})

    def tensors(self) -> Iterator[tuple[int | str, str, torch.Tensor]]:
        """Yield all tensors, with the number of the layer and the part of it that they are."""
        for number, layer in enumerate(self.own.layers):
            for part in ("keys", "values", "cumulative_length"):
                yield number, part, getattr(layer, part)
        for number, layer in enumerate(self._heard.layers if self._heard else ()):
            for part in ("keys", "values"):
                yield f"heard.{number}", part, getattr(layer, part)

    def step(self, d: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the logits at a place of some tokens, and keep their keys and values."""
        if self._heard is None:
            kept = {self._argument: self.own, "logits_to_keep": d["at"]}
            return {"logits": self._model(input_ids=d["tokens"], **kept).logits[0, 0]}
        found = self._call(d["tokens"], self._states, self.own, self._heard)
        return {"logits": found.logits[0].index_select(0, d["at"])[0]}

    def encode(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Keep the keys and values of what the encoder says."""
        for own, new in zip(self._heard.layers, self._hear(inputs)[1].layers, strict=True):
            own.keys.copy_(new.keys)
            own.values.copy_(new.values)
        return {}

    def _hear(self, inputs: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, Any]:
        from transformers.cache_utils import DynamicCache

        states, heard = self._model.get_encoder()(**inputs)[0], DynamicCache()
        self._call(torch.zeros(1, 1).long(), states, DynamicCache(), heard)
        return torch.zeros_like(states), heard

    def _call(self, tokens: torch.Tensor, states: torch.Tensor, own: Any, heard: Any) -> Any:
        from transformers.cache_utils import EncoderDecoderCache

        both = {self._argument: EncoderDecoderCache(own, heard)}
        return self._model(decoder_input_ids=tokens, encoder_outputs=(states,), **both)


def _check_inputs(inputs: object, *, encodes: bool) -> None:
    if encodes != isinstance(inputs, Mapping):
        legal = "a dict of what the encoder takes" if encodes else "None: there is no encoder"
        raise error("P0704", name="inputs", value=type(inputs).__name__, legal=legal)


def _layouts(function: CompiledFunction, prefix: str) -> tuple[dict[str, dict[str, str]], bool]:
    """Return the layouts of the cache as overrides, and whether the function writes it in place.

    With other layouts, each call would copy the whole cache, for itself or the other function.
    """
    app = getattr(function.function, "app", None)
    if app is None:  # on the host
        return {}, True
    names = [port.value for port in app.registered if port.key.startswith(prefix)]
    own = {name: {"layout": app.values[name].layout} for name in names}
    new = {p.value: own[p.key] for p in app.updates if p.key in own}
    same = (app.values[p.value].dram == app.values[p.key].dram for p in app.updates)
    return own | new, all(same)
