"""``python -m node_suite.run``: runs ONNX's node tests and writes docs/onnx.md."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

from onnx.backend.test.case.node import collect_testcases  # noqa: E402

from .workers import run_all  # noqa: E402

ap = argparse.ArgumentParser()
ap.add_argument("--only", default="")
ap.add_argument("--jobs", type=int, default=2)
ap.add_argument("--out", type=Path)
ap.add_argument("--device", default="emu2:mini")
ap.add_argument("-v", action="store_true")
args = ap.parse_args()
cases = [c for c in collect_testcases(None) if any(p in c.name for p in args.only.split(","))]
count = collections.Counter()


def finished(o):
    count[o.kind] += 1
    if args.v:
        print(o.name, o.kind, o.code, o.reason, o.seconds, flush=True)
    elif sum(count.values()) % 50 == 0:
        print(dict(count), flush=True)


res = run_all(cases, args.device, args.jobs, finished)
print(dict(count))
if args.out:
    args.out.write_text("\n".join(json.dumps(o.__dict__) for o in res) + "\n")
