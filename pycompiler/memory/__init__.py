"""How much memory a function needs for what it keeps between operators."""

from .plan import training_tensors as training_tensors
from .tensors import ACTIVATION as ACTIVATION
from .tensors import GRADIENT as GRADIENT
from .tensors import KINDS as KINDS
from .tensors import WEIGHT_GRADIENT as WEIGHT_GRADIENT
from .tensors import Tensor as Tensor
from .tensors import tensors_of as tensors_of
from .uses import Use as Use
from .uses import lower_bound as lower_bound
from .uses import packed as packed
from .uses import uses as uses
