"""What scripts import from MLSDK and call, with the parameters that their calls need."""

#: Each module with its names. Functions and classes have parameters: `*` begins those by keyword
#: only, `=` marks those that may be left out. None: not called.
NAMES: dict[str, dict[str, str | None]] = {
    "mlsdk": {
        "MNDevice": "name",
        "Context": "device",
        "Context.switch_context": "context",
        "Context.compile": "function inputs codegen_dir * options= cache_options= optimizers= "
        "training= num_compiler_threads= quiet= export_kwargs= io_spec_constraints=",
        "Context.compile_automap": "fn args kwargs codegen_dir **settings",
        "Context.load_codegen_dir": "path",
        "Context.register_param": "tensor",
        "Context.register_buffer": "tensor",
        "Context.register_optimizer_buffers": "optimizer",
        "Context.get_registered_value_proxy": "tensor",
        "Context.synchronize": "",
        "Context.invalidate": "",
        "CompiledFunction": "function codegen_dir",
        "CompiledFunction.__call__": "inputs",
        "CompiledFunction.allocate_input_proxy": "",
        "CompiledFunction.input_specs": None,
        "CompiledFunction.output_specs": None,
        "IOSpec.is_memcopyable_to": "other",
        "TensorProxy.cpu": "",
        "TensorProxy.item": "",
        "TensorProxy.load_from": "value clone=",
        "TensorProxy.shape": None,
        "TensorLike": None,
        "CacheOptions": "dir enable_app_cache= enable_onnx_cache= enable_codegen_cache= "
        "enable_gpfn2obj_cache=",
        "path": "location= target=",
        "storage": None,
        "set_tensor_name": "tensor name",
        "set_tensor_name_in_module": "module prefix",
        "get_tensor_name": "tensor",
        "set_buffer_name_in_optimizer": "optimizer prefix",
        "MNCoreOptimizer.zero_grad": "set_to_none=",
        "MNCoreOptimizer.step": "closure=",
        "MNCoreOptimizer.state_dict": "",
        "MNCoreOptimizer.load_state_dict": "state_dict",
        "MNCoreSGD": "params lr= momentum= dampening= weight_decay= nesterov=",
        "MNCoreAdam": "params lr= betas= eps= weight_decay= chainer_use_torch=",
        "MNCoreAdamW": "params lr= betas= eps= weight_decay=",
        "MNCoreLRScheduler": "torch_scheduler context",
        "MNCoreLRScheduler.step": "*args",
        "trace_scope": "filename",
        "trace_event": "name",
        "register_pytree_namedtuple": "cls",
        "register_pytree_dataclass": "cls",
    },
    "mlsdk.storage": {"path": "location= target="},
    "mlsdk.experimental.llm.attention_mask": {
        "prepare_4d_causal_attention_mask_with_cache_position": "mask position_ids dtype"
    },
    "mlsdk.experimental.llm.kv_cache": {
        "kv_cache_to_tensor": "kv_cache",
        "kv_cache_to_legacy": "kv_cache",
        "kv_cache_to_plamo": "kv_cache",
    },
    "mlsdk.experimental.llm.generation": {
        "Decoder": "context model codegen_dir * positions chunk= name= inputs= options= **settings",
        "Decoder.generate": "prompt max_new_tokens * temperature= top_k= top_p= stop= generator= "
        "inputs=",
        "chances": "logits temperature top_k top_p",
    },
    "mlsdk.experimental.llm.modeling_staged_llama": {"split_llama": "model n_stages"},
    "fx2onnx": {
        "set_tensor_name": "tensor name",
        "set_tensor_name_in_module": "module prefix",
        "get_tensor_name": "tensor",
    },
    "fx2onnx.linter": {"lint": "function inputs", "LintLevel": None, "LintResult": None},
}

#: Methods of objects that a context has.
REGISTRY = {"register": "prefix module_or_optimizer"}

#: Calls that are refused, each with the start of its diagnostic.
REFUSED = {
    "from mlsdk.experimental.llm.kv_cache import kv_cache_to_plamo as f; f(None)": (
        "[P0703] `kv_cache_to_plamo` is not supported: "
    ),
}
