"""The catalogue: models of several libraries, each small enough to be emulated in seconds.

A row has a name (see :mod:`names`), settings that make the model smaller, and the reason for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A model that can be built.

    ``size`` is the side of its pictures in pixels. ``settings`` go to the function that builds the
    model, or to its configuration class. ``cut`` names a Sequential or ModuleList of the model and
    how many of its blocks stay. ``statistics`` gives the batch norms those of a batch, as training
    would: without them, some models multiply their values in every block. ``note`` says how the
    model differs from the published one. ``batches`` are those that the page tells about. ``quick``
    marks the models that `make test` runs, with the first batch.
    """

    library: str
    model: str
    size: int = 64
    settings: Mapping[str, Any] = field(default_factory=dict)
    cut: tuple[str, int] | None = None
    statistics: bool = False
    note: str = ""
    quick: bool = False
    batches: tuple[int, ...] = (1,)

    @property
    def name(self) -> str:
        """The name on the command line and in the table."""
        return f"{self.library}:{self.model}"


_DEPTH = "2 blocks"
_SMALL = "small configuration"
#: One picture, and a number of them that is no power of two as the levels of the machine are.
_PICTURES = (1, 3)


def _own(model: str, note: str, **more: Any) -> Entry:
    return Entry("own", model, note=note, **more)


def _vision(model: str, size: int = 64, note: str = "", **more: Any) -> Entry:
    return Entry("torchvision", model, size, note=note, **more)


def _timm(model: str, size: int = 64, note: str = "", **settings: Any) -> Entry:
    own = {name: settings.pop(name) for name in ("cut", "quick", "statistics") if name in settings}
    return Entry("timm", model, size, settings, note=note, **own)


def _text(model: str, note: str = _SMALL, **settings: Any) -> Entry:
    quick = settings.pop("quick", False)
    return Entry("transformers", model, 32, settings, note=note, quick=quick)


_ENTRIES = (
    _own("mlp", "784-256-128-10 with softmax", quick=True),
    _own("residual_mlp", "8 layers with LayerNorm", quick=True),
    _own("bigram", "embedding and cross entropy", quick=True),
    _own("nbody", "forces between 64 bodies", quick=True),
    _own("heat", "8 explicit steps on a grid of 64 by 64"),
    _own("black_scholes", "4096 option prices with erf"),
    _own("power_iteration", "8 steps on a matrix of 96 by 96"),
    _own("neural_field", "sine network of coordinates (SIREN)"),
    _own("lenet5", "pictures of 28 by 28", quick=True, batches=_PICTURES),
    _own("resnet20", "pictures of 32 by 32 (CIFAR)", batches=_PICTURES),
    _own("unet", "ConvTranspose and concatenations", batches=_PICTURES),
    _own("keypoints", "a head with bilinear upsampling", quick=True, batches=_PICTURES),
    _vision("resnet18", batches=_PICTURES),
    _vision("resnet50", batches=_PICTURES),
    _vision("vgg11_bn", batches=_PICTURES),
    _vision("mobilenet_v2", batches=_PICTURES),
    _vision("mobilenet_v3_small", batches=_PICTURES),
    _vision("squeezenet1_1", batches=_PICTURES),
    _vision("efficientnet_b0", batches=_PICTURES),
    _vision("densenet121", batches=_PICTURES),
    _vision("shufflenet_v2_x0_5", batches=_PICTURES),
    _vision("shufflenet_v2_x1_0", batches=_PICTURES),
    _vision("googlenet", settings={"init_weights": False}, batches=_PICTURES),
    _vision("mnasnet0_5"),
    _vision("alexnet"),
    _vision("convnext_tiny", batches=_PICTURES),
    _vision("regnet_y_400mf", batches=_PICTURES),
    _vision("swin_t", batches=_PICTURES),
    _vision("vit_b_16", note=_DEPTH, cut=("encoder.layers", 2), batches=_PICTURES),
    _timm("mixer_s16_224", note=_DEPTH, cut=("blocks", 2)),
    _timm("gmlp_s16_224", note=_DEPTH, cut=("blocks", 2)),
    _timm("resmlp_12_224", note=_DEPTH, cut=("blocks", 2)),
    _timm("vit_tiny_patch16_224", note="1 block", depth=1, quick=True),
    _timm("deit_tiny_patch16_224", note=_DEPTH, depth=2),
    _timm("cait_xxs24_224", note=_DEPTH, depth=2),
    _timm("beit_base_patch16_224", note=_DEPTH, depth=2),
    _timm("eva02_tiny_patch14_224", 56, _DEPTH, depth=2),
    _timm("xcit_nano_12_p8_224", note=_DEPTH, depth=2),
    _timm("convmixer_768_32", note=_DEPTH, cut=("blocks", 2)),
    _timm("poolformer_s12"),
    _timm("pit_ti_224"),
    _timm("coat_lite_tiny"),
    _timm("levit_128s"),
    _timm("crossvit_tiny_240", 240, "240 pixels, 1 block per stage", depth=((1, 1, 0),) * 3),
    _timm("twins_pcpvt_small"),
    _timm("convit_tiny", note=_DEPTH, depth=2, local_up_to_layer=1),
    _timm("ghostnet_100"),
    _timm("edgenext_xx_small"),
    _timm("mobilevit_xxs"),
    _timm("visformer_tiny", note="BatchNorm statistics of a batch", statistics=True),
    _timm("repvgg_a0"),
    _timm("lcnet_050"),
    _timm("tinynet_e"),
    _timm("convnextv2_atto"),
    _timm("inception_next_atto"),
    _timm("resnest14d"),
    _timm("seresnet18"),
    _timm("starnet_s1"),
    _timm("efficientvit_b0"),
    _timm("mambaout_femto"),
    _text("BertModel", quick=True),
    _text("RobertaModel"),
    _text("DistilBertModel", quick=True, dim=64, hidden_dim=128, n_layers=2, n_heads=4),
    _text("AlbertModel", embedding_size=32),
    _text("ElectraModel", embedding_size=32),
    _text("DebertaV2Model"),
    _text("MobileBertModel", embedding_size=32, intra_bottleneck_size=32),
    _text("GPT2LMHeadModel"),
    _text("GPTNeoModel", num_layers=2, attention_types=[[["global", "local"], 1]]),
    _text("GPTNeoXModel"),
    _text("OPTModel", ffn_dim=128, word_embed_proj_dim=64),
    _text("BloomModel", n_layer=2, n_head=4),
    _text("LlamaModel", num_key_value_heads=2, quick=True),
    _text("MistralModel", num_key_value_heads=2),
    _text("Qwen2Model", num_key_value_heads=2),
    _text("Gemma2Model", num_key_value_heads=2, head_dim=16),
    _text("PhiModel"),
    _text("MixtralModel", f"{_SMALL}, 4 experts", num_key_value_heads=2, num_local_experts=4),
    _text("T5EncoderModel", quick=True, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4),
    _text("BartModel", d_model=64, encoder_layers=2, encoder_ffn_dim=128,
          encoder_attention_heads=4, decoder_layers=2, decoder_ffn_dim=128,
          decoder_attention_heads=4),
    _text("MambaModel", state_size=8),
    _text("ViTModel", patch_size=8),
    _text("DeiTModel", patch_size=8),
    _text("SwinModel", embed_dim=16, depths=[1, 1], num_heads=[2, 4], window_size=4,
          patch_size=2),
    _text("ConvNextModel", num_hidden_layers=4, hidden_sizes=[16, 32, 64, 64],
          depths=[1, 1, 1, 1]),
    _text("MobileViTModel", hidden_sizes=[32, 48, 64],
          neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 64]),
    _text("CLIPVisionModel", patch_size=8),
    _text("CLIPTextModel"),
    _text("Dinov2Model", patch_size=8),
    _text("SegformerModel", num_hidden_layers=4, hidden_sizes=[16, 32, 64, 64],
          depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 4, 4]),
    _text("models.whisper.modeling_whisper.WhisperEncoder", d_model=64, encoder_layers=2,
          encoder_attention_heads=4, encoder_ffn_dim=128, max_source_positions=32),
)  # fmt: skip

#: The entries by name.
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
