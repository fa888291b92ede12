"""Builds models with random weights. Nothing is downloaded; libraries load when they are used."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from ..errors import PycompilerError, error
from . import networks
from .catalogue import Entry
from .names import LIBRARIES, USAGE, like

Tensors = dict[str, torch.Tensor]

SEED = 0
#: The extra that installs the libraries.
EXTRA = "models"
_COLOURS = 3
_TOKENS = 16
_PICTURES = 16  # of a batch for statistics

#: What a configuration class of transformers gets if it has such a setting, a number, and the
#: catalogue does not give another.
SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 256,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_FIRST_LETTER = 3  # tokens below it are padding, begin and end


@dataclass(frozen=True, eq=False)
class Model:
    """A function of tensors by name, and inputs for it.

    ``plain`` is the module or function as its library made it, ``named`` whether it takes its
    inputs by name.
    """

    plain: Callable[..., Any]
    inputs: Tensors
    named: bool

    @property
    def function(self) -> Callable[[Tensors], Tensors]:
        """The model as a function of a dict, which returns a dict."""
        return self.through(self.plain)

    def through(self, plain: Callable[..., Any]) -> Callable[[Tensors], Tensors]:
        """Return the same function with another form of ``plain`` inside."""

        def call(tensors: Tensors) -> Tensors:
            if self.named:
                result = plain(**{name: tensors[name] for name in self.inputs})
            else:
                result = plain(*(tensors[name] for name in self.inputs))
            return dict(_tensors(result, "out"))

        return call


def build_model(entry: Entry, batch: int) -> Model:
    """Return the model of an entry with the weights of a fixed seed, in evaluation mode.

    P0007 if the library has no such model, P0008 if it is not installed. Exceptions of the
    library pass through.
    """
    torch.manual_seed(SEED)
    function, inputs = _BUILDERS.get(entry.library, _user)(entry, batch)
    if isinstance(function, torch.nn.Module):
        _cut(function, entry)
        function.eval().requires_grad_(False)
        _vary(function)
        if entry.statistics:
            _take_statistics(function, _picture(entry, _PICTURES))
    if isinstance(inputs, dict):
        return Model(function, inputs, named=True)
    return Model(function, {f"x{n}": tensor for n, tensor in enumerate(inputs)}, named=False)


def shuffled(inputs: Tensors) -> Tensors:
    """Return other inputs of the same shapes and the same range: the elements in another order."""
    torch.manual_seed(SEED + 1)
    return {
        name: tensor.flatten()[torch.randperm(tensor.numel())].reshape(tensor.shape)
        for name, tensor in inputs.items()
    }


#: A function or module, and its inputs: by the names of its parameters, or in their order.
Built = tuple[Callable[..., Any], Tensors | tuple[torch.Tensor, ...]]


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise error("P0008", package=name, extra=EXTRA) from problem


def _missing(entry: Entry, reason: str, known: Iterable[str] = ()) -> Exception:
    """Return the diagnostic of a model that does not exist; ``known`` are those that do."""
    near = like(entry.name, (f"{entry.library}:{name}" for name in known))
    problem = f"there is no model `{entry.name}`: {reason}{near}"
    return error("P0007", problem=problem, usage=USAGE)


def check_name(entry: Entry) -> None:
    """Look for a model of a library without building it. P0007 or P0008 if it is not there.

    Other exceptions of a library are left to the process of the model, whose row tells them.
    """
    look = _LOOKS.get(entry.library)
    if look is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                look(entry)
            except PycompilerError:
                raise
            except Exception:
                return


def _picture(entry: Entry, batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(batch, _COLOURS, entry.size, entry.size),)


def _own(entry: Entry, batch: int) -> Built:
    make = getattr(networks, entry.model, None)
    if entry.model.startswith("_") or getattr(make, "__module__", "") != networks.__name__:
        raise _missing(entry, "`--list` shows all models of `own`")
    made: Built = make(batch)  # type: ignore[misc]
    return made


def _torchvision_models(entry: Entry) -> Any:
    """Return the module of torchvision that has the entry's model."""
    models = _library("torchvision").models
    known = models.list_models()
    if entry.model not in known:
        raise _missing(entry, "torchvision.models.list_models() has no such name", known)
    return models


def _torchvision(entry: Entry, batch: int) -> Built:
    models = _torchvision_models(entry)
    settings = dict(entry.settings)
    if "vision_transformer" in models.get_model_builder(entry.model).__module__:
        settings.setdefault("image_size", entry.size)
    model = models.get_model(entry.model, weights=None, **settings)
    return model, _picture(entry, batch)


def _timm_library(entry: Entry) -> Any:
    """Return timm, which has the entry's model."""
    timm = _library("timm")
    if not timm.is_model(entry.model):
        raise _missing(entry, "timm.list_models() has no such name", timm.list_models())
    return timm


def _timm(entry: Entry, batch: int) -> Built:
    timm = _timm_library(entry)
    settings = dict(entry.settings)
    facts = timm.get_pretrained_cfg(entry.model)
    if facts is not None and facts.fixed_input_size:
        settings.setdefault("img_size", entry.size)
    model = timm.create_model(entry.model, pretrained=False, **settings)
    return model, _picture(entry, batch)


def _transformers_class(entry: Entry) -> Any:
    """Return the model class of an entry."""
    library: Any = _library("transformers")
    kind = library
    for part in entry.model.split("."):
        kind = getattr(kind, part, None)
    if getattr(kind, "config_class", None) is None:
        known = (name for name in dir(library) if name.endswith("Model") or "For" in name)
        raise _missing(entry, "transformers has no such model class", known)
    return kind


def _transformers(entry: Entry, batch: int) -> Built:
    kind = _transformers_class(entry)
    made = kind.config_class
    plain = made()
    known = {n: v for n, v in SMALL.items() if isinstance(getattr(plain, n, ()), int | None)}
    if hasattr(plain, "image_size"):
        known["image_size"] = entry.size
    config = made(**{**known, **entry.settings})
    # The forms of attention and of mixtures of experts that torch can export to ONNX.
    config._attn_implementation, config._experts_implementation = "eager", "batched_mm"
    if hasattr(config, "use_cache"):
        config.use_cache = False
    model = kind(config)
    return model, _inputs(entry, model.main_input_name, config, batch)


def _inputs(entry: Entry, name: str, config: Any, batch: int) -> Tensors:
    """Return the main input of a model of transformers."""
    if name == "input_ids":
        tokens = torch.randint(_FIRST_LETTER, config.vocab_size, (batch, _TOKENS))
        return {name: tokens}
    if name == "pixel_values":
        size = getattr(config, "image_size", entry.size)
        colours = getattr(config, "num_channels", _COLOURS)
        return {name: torch.randn(batch, colours, size, size)}
    if name == "input_features":
        frames = 2 * config.max_source_positions  # the first convolutions halve them
        return {name: torch.randn(batch, config.num_mel_bins, frames)}
    raise _missing(entry, f"no inputs can be made for its main input `{name}`")


def _user(entry: Entry, batch: int) -> Built:
    """Call the function MODULE:FUNCTION, which returns a module or function and its inputs."""
    try:
        module = importlib.import_module(entry.library)
    except ModuleNotFoundError as problem:
        raise _missing(entry, str(problem)) from problem
    make = getattr(module, entry.model, None)
    if not callable(make):
        raise _missing(entry, f"`{entry.library}` has no function `{entry.model}`")
    function, inputs = make()
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    return function, inputs


_BUILDERS: Mapping[str, Callable[[Entry, int], Built]] = dict(
    zip(LIBRARIES, (_own, _torchvision, _timm, _transformers), strict=True)
)
#: What looks for a model in a library.
_LOOKS: Mapping[str, Callable[[Entry], Any]] = dict(
    zip(LIBRARIES[1:], (_torchvision_models, _timm_library, _transformers_class), strict=True)
)


def _cut(model: torch.nn.Module, entry: Entry) -> None:
    """Keep only the first blocks of a list of the model."""
    if entry.cut is not None:
        path, count = entry.cut
        parent, _, name = path.rpartition(".")
        owner = model.get_submodule(parent)
        setattr(owner, name, getattr(owner, name)[:count])


def _vary(model: torch.nn.Module) -> None:
    """Make parameters and running statistics that have one value everywhere vary.

    Libraries start many of them at 0 or 1, or at 1e-6. A wrong place or a lost term would not show
    in such a model.
    """
    buffers = [t for n, t in model.named_buffers() if n.split(".")[-1].startswith("running_")]
    for tensor in (*model.parameters(), *buffers):
        if not tensor.is_floating_point() or tensor.numel() < _SEVERAL:
            continue
        first = float(tensor.flatten()[0])
        if bool((tensor == first).all()):
            factor = torch.rand_like(tensor) + 0.5
            tensor.copy_(first * factor if abs(first) > _TINY else torch.randn_like(tensor) * _TINY)


def _take_statistics(model: torch.nn.Module, batch: tuple[torch.Tensor, ...]) -> None:
    """Give batch norms the statistics of a batch, which training would give them."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the average of all batches, which are one
        norm.train()
    with torch.no_grad():
        model(*batch)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
        norm.eval()


_SEVERAL = 2  # a single number is a setting
_TINY = 0.1  # the spread that replaces zeros and smaller values


def _tensors(result: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of nested results, with names made of the keys that lead to them."""
    if isinstance(result, torch.Tensor):
        yield name, result
    elif isinstance(result, Mapping):
        for key, value in result.items():
            yield from _tensors(value, str(key) if name == "out" else f"{name}.{key}")
    elif isinstance(result, tuple | list):
        for number, value in enumerate(result):
            yield from _tensors(value, f"{name}{number}")
