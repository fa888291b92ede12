"""Sources that the linker refuses, one or more for each number."""

from __future__ import annotations

from link_case import FLAGS, POOL

SHORT = "@alloc left :omr 9 10 11 :grf0 200 202 :n 0"
NEIGHBOR = "@get_neighbor $lr30 -1 $lm0 f nbuf0 left"
ENTRIES = "((:version :0.1) {})"
SLOT = "(:slot 8 :addr 0 :send_wait_tag #x10 :recv_wait_tag #x1e)"
ALL = [f"@broadcast b{n} from_param {n} size 1 $lr0" for n in range(100, 228)]
MANY, FEW = "\n".join(ALL), "\n".join(ALL[:-2])
PLACES = "".join(f"(:slot {n} :addr {64 * n})" for n in range(100, 230))

CASES = [
    ("E101", "nop", f"(:reserved_wait_tag #x1e) {SLOT}"),
    ("E101", "nop", f"(:reserved_wait_tag #x10) {SLOT}"),
    ("E101", "nop", "(:slot 8 :addr 0 :recv_wait_tag #x3f)"),
    ("E101", "nop", "(:reserved_wait_tags 1 2) (:identify 0 :addr 0 :send_wait_tag 2)"),
    ("E102", "nop", "(:reserved_wait_tag #x40)"),
    ("E102", "nop", "(:reserved_wait_tags 5 0)"),
    ("E103", "nop", "(:reserved_wait_tags 5 6 5)"),
    ("E105", "nop", "(:reserved_wait_tags)"),
    ("E105", "nop", "(:reserved_wait_tag)"),
    ("E106", "nop", "(:reserved_wait_tag 5 6)"),
    ("E110", f"{FEW}\n@collect c to_param 100 size 1 $lm0", PLACES),
    ("E115", "nop", "(:buffer b :addr 0 :buf_size 64) (:buffer b :addr 64 :buf_size 64)"),
    ("E116", f"@alias f $lr40\n{POOL}\n{NEIGHBOR.replace('nbuf0', 'short0')}", None),
    ("E117", MANY, PLACES),
    ("E201", f"{POOL}\n{POOL}", None),
    ("E202", "@alloc", None),
    ("E202", "@alloc :grf0 2", None),
    ("E203", "@alloc a :grf2 2", None),
    ("E204", "@alloc a 2 :grf0 2", None),
    ("E205", "@alloc a :grf0 512", None),
    ("E205", "@alloc a :omr 0", None),
    ("E205", "@alloc a :omr 16", None),
    ("E205", "@alloc a :m x", None),
    ("E206", "@alloc a :grf0" + " 2" * 65, None),
    ("E207", "@alloc a :n 3", None),
    ("E208", "@alloc a", None),
    ("E208", "@alloc a :grf0", None),
    ("E209", "@free", None),
    ("E210", f"{POOL}\n@free right", None),
    ("E210", "@free left", None),
    ("E211", "@boundary_flags_compute f 0 $lm0 left", None),
    ("E211", "@boundary_flags_compute f 0", None),
    ("E212", "@boundary_flags_compute f 3 $lr0 left", None),
    ("E213", "@boundary_flags_compute f 0 $lr0 left", None),
    ("E214", f"{SHORT}\n@boundary_flags_compute f 0 $lr0 left", None),
    ("E215", f"@boundary_flags bf0 3 $lr0 {FLAGS}", None),
    ("E216", "@boundary_flags bf0 0 $lr0", None),
    ("E217", "@boundary_flags bf0 0 $lr0 left_edge", None),
    ("E218", "@reduce r to_param 32 $lr0", None),
    ("E218", "@reduce r from_param 32 $lr0 liadd", None),
    ("E219", "@reduce r to_param 33 $lr0 liadd", None),
    ("E220", "@reduce r to_param 32 $lr0 lmul", None),
    ("E221", f"{POOL}\n@get_neighbor $lr30 -2 $lm0 f nbuf0 left", None),
    ("E221", f"{POOL}\n@get_neighbor $lm30 -1 $lm0 f nbuf0 left", None),
    ("E222", NEIGHBOR, None),
    ("E223", f"{POOL}\n{NEIGHBOR.replace('nbuf0', 'nbuf1')}", None),
    ("E224", f"{POOL}\n{NEIGHBOR}", None),
    ("E225", f"@alias f $lr40\n{SHORT}\n{NEIGHBOR}", None),
    ("E226", "@broadcast b from_param 40 $lr0", None),
    ("E226", "@broadcast b from_param 40 size 1 lr0", None),
    ("E227", "@broadcast b from_param 40 size 5 $lr0", None),
    ("E228", "@broadcast b from_param 48 size 4 $lr0", None),
    ("E229", "@alias f", None),
    ("E230", "@alias f $lm0", None),
    ("E231", "@alias f $lr0\n@alias f $lr2", None),
    ("E232", "@alias f $lr0\n@assign f $lr2", None),
    ("E233", f"{FEW}\n@collect c to_param 100 size 1 $lm0", PLACES),
    ("E235", MANY, PLACES),
    ("E236", "@identify 1 $lr0 4096", None),
    ("E237", f"@boundary_flags bf1 0 $lr0 {FLAGS}", None),
    ("E238", "@distribute a from_param 9 size 1 $lm0", None),
    ("E239", "@broadcast a from_param 9 size 1 $lm0", None),
    ("E240", "@collect a to_param 9 size 1 $lm0", None),
    ("E241", "@collect a to_param 24 size 0 $lm0", None),
    ("E242", "@distribute a from_param 8 size 5 $lm0", None),
]
"""A number, a source that raises it, and the entries of its placement; None: the usual ones."""
