# Sourced by runners of scripts for MLSDK: `import mlsdk` then finds pycompiler's, `gpfn3-smi` is ours.
_python="$(command -v python || command -v python3)"
_mlsdk="$("$_python" -c 'import importlib.util as u; print(u.find_spec("pycompiler").submodule_search_locations[0])')/mlsdk/importable"
export PYTHONPATH="$_mlsdk${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "${BASH_SOURCE:-}" ]; then
    PATH="$(cd "$(dirname "$BASH_SOURCE")" && pwd)/bin:$PATH"
    export PATH
fi
unset _python _mlsdk
