#!/bin/bash
# Runs a command with MLSDK: `./exec_with_env.sh python add.py`.
set -eu
folder="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
source "$folder/build/codegen_pythonpath.sh"
exec "$@"
