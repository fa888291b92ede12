"""Names of tensors, from :mod:`pycompiler.mlsdk`: scripts import them from here too."""

from pycompiler.mlsdk import get_tensor_name as get_tensor_name
from pycompiler.mlsdk import set_tensor_name as set_tensor_name
from pycompiler.mlsdk import set_tensor_name_in_module as set_tensor_name_in_module
