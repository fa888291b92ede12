"""The environment variables of MLSDK that are known: what each does here."""

from __future__ import annotations

from collections.abc import Iterable

from emu2.near import did_you_mean

from ..errors import PycompilerError, error

#: The environment variable that names the folder of presets.
FOLDER = "PRESET_OPTIONS_DIR"
#: The environment variable that asks for a search for the best options.
FIND_BEST = "CODEGEN_FIND_BEST_COMPILE_OPTIONS"
#: The one that stands for the option ``sa_expected_run_iters``.
SA_STEPS = "CODEGEN_SA_STEPS"
#: The one that overrides the device that a script names.
DEVICE = "MLSDK_DEVICE"
#: Variables with these beginnings steer compiles.
PREFIXES = ("CODEGEN_", "MLSDK_", "MNCORE_", "PFVM_")
#: Knobs of the vendor's planners, which are not ours: ``CODEGEN_`` and one of these.
_KNOBS = """
ALARM ALLOW_UNUSED_LAYOUT_SPEC AUTO_RECOMPUTE_HACK_FOR_QWEN CONV_AGGRESSIVE_TIME_SLICING
DEFER_SIMPLIFY DUMP_VSM ENABLE_SET_PARTIAL_LOCATION FIND_BETTER_COMPILE_OPTIONS
FORCE_ATTENTION_GRAD_AFTER_FORWARD GEMM_FORCE_CHANNEL_SPLIT GEMM_FORCE_WEIGHT_ON_DRAM
GENERIC_MOVE_CHUNK_SIZE GN_AGGRESSIVE_TIME_SLICING IGNORE_LAYOUT_CHECK IGNORE_REUSED_VALUE_LAYOUT
LAYOUT_PLANNER_Z LAYOUT_PLANNER_Z_HONOR_LAYOUT_SPEC LPZ_SKIP_PROPAGATE_TIME MAX_TIME_SLICE
NODE_SIM_ALLOW_UNEXPECTED_FAIL NUM_SA_THREADS N_DEV_COPY_STREAMS_THREADS N_TRANSPOSE_THREADS
OPS_ON_HOST OP_DEF SCHEDULE_PP_BEAM_WIDTH SKIP_OPTIMIZER_FUSION SKIP_RESOLVE_NEGATIVE_INDICES
SPATIAL_SPLIT_THRESHOLD_L2B_L1B STOP_USING_GENERIC_INDEXING_GATHER_INDEX_ADD
TIME_SLICE_SCATTERED_INDEXING_BCAST USE_ADDR_FIRST_Z
"""
WITHOUT_EFFECT = {
    *("MNCORE_USE_LEGACY_ONNX_EXPORTER", "MNCORE_USE_EXTERNAL_DATA_FORMAT"),
    "PFVM_DISABLE_CONSTANT_REUSE",
    *(f"CODEGEN_{name}" for name in _KNOBS.split()),
}
KNOWN = {FOLDER, FIND_BEST, SA_STEPS, DEVICE} | WITHOUT_EFFECT


def unknown_variables(names: Iterable[str]) -> list[PycompilerError]:
    """Return P0710 for each name that begins like a variable of MLSDK and is none."""
    found = []
    for name in sorted(own for own in names if own.startswith(PREFIXES) and own not in KNOWN):
        remedy = did_you_mean(name, KNOWN).strip() or "take it away:"
        found.append(error("P0710", name=name, remedy=remedy))
    return found
